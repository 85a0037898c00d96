#!/usr/bin/env python3
"""Verifies what `audit export` wrote: python3 verify_bundle.py bundle.tar <vkey> [<checkpoint>]
docs/proof.md specifies the format. Cosignatures are not checked, nor what came since."""
import hashlib, json, re, sys
from base64 import b64decode, b64encode, urlsafe_b64decode
from decimal import Decimal

NAMES = "manifest vkey checkpoint session.tlog-proof consistency events.jsonl".split()
MEMBERS = ["data", "id", "metadata", "revision", "stream", "type"]
TEXTS = "arguments content input instruction message output result summary title".split()
KINDS = {"sha256": "redacted", "salt sha256 text": "disclosed", "erased sha256": "erased"}
TAR = rb"\0+000644 \0(0{6} \0){2}(\d{11} ){2}\d{6} \x000\0{100}ustar\x0000\0{64}(0{6} \0){2}\0{167}"
plain = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
Number = type("Number", (str,), {})  # as it is written
sha = lambda data: hashlib.sha256(data).digest()
P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D, SQRT = -121665 * pow(121666, -1, P) % P, pow(2, (P - 1) // 4, P)

def need(holds, why):
    if not holds:
        raise ValueError(why)

def hashes(lines):
    need(all(re.fullmatch(".{42}[^=]=", one) for one in lines), "a hash is none")
    return [base64(one) for one in lines]

def base64(text):
    need(b64encode(b64decode(text)).decode() == text, "base64 is not as it has to be")
    return b64decode(text)

def point(data):
    """A point of Ed25519 from its 32 bytes (RFC 8032, 5.1.3)."""
    y, sign = int.from_bytes(data, "little") % 2**255, data[31] >> 7
    xx = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(xx, (P + 3) // 8, P)
    x = x if x * x % P == xx else x * SQRT % P
    need(y < P and x * x % P == xx and (x or not sign), "a point is not on the curve")
    x = x if x % 2 == sign else P - x
    return x, y, 1, x * y % P

def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]), (p[1] + p[0]) * (q[1] + q[0])
    c, d = 2 * p[3] * q[3] * D, 2 * p[2] * q[2]
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P

def times(scalar, p):
    rest = times(scalar // 2, add(p, p)) if scalar else (0, 1, 1, 0)
    return add(rest, p) if scalar % 2 else rest

def signed(key, message, signature):
    """Whether an Ed25519 signature is right (RFC 8032, 5.1.7)."""
    s, r = int.from_bytes(signature[32:], "little"), signature[:32]
    k = int.from_bytes(hashlib.sha512(r + key + message).digest(), "little") % L
    one = times(s, point((4 * pow(5, -1, P) % P).to_bytes(32, "little")))
    other = add(point(r), times(k, point(key)))
    same = all((one[i] * other[2] - other[i] * one[2]) % P == 0 for i in (0, 1))
    return len(signature) == 64 and s < L and same

def opened(note, vkey):
    """Size and root of a checkpoint that the log's key has signed."""
    name, hint, key = re.fullmatch(r"([^+\s]+)\+([0-9a-f]{8})\+(\S+)", vkey.strip()).groups()
    hint, key = bytes.fromhex(hint), b64decode(key)
    right = sha(name.encode() + b"\n" + key)[:4] == hint and key[0] == 1 and len(key) == 33
    text, _, lines = note.rpartition("\n\n")
    origin, size, root, *more = text.split("\n")
    right = right and re.fullmatch("0|[1-9][0-9]*", size) and not re.search("[\0-\t\v-\x1f]", note)
    need(right and origin == name and all(more), "the vkey is not the checkpoint's")
    pairs = [re.fullmatch("— ([^\\s+]+) (.{6}[^=].+)\n", one) for one in lines.splitlines(True)]
    mine = [base64(one[2])[4:] for one in pairs if base64(one[2])[:4] == hint and one[1] == name]
    right = len(pairs) <= 100 and len(mine) == 1 and signed(key[1:], text.encode() + b"\n", *mine)
    need(right, "the checkpoint is not signed by the vkey")
    return int(size), base64(root)

def root_of(leaf, index, size, path):
    """The root that a leaf and its inclusion path lead to (RFC 9162, 2.1.3.2)."""
    need(0 <= index < size < 2**53 and (size > 1) == bool(path), "the proof is not of the tree")
    if size == 1:
        return leaf
    split, path, last = 1 << (size - 1).bit_length() - 1, path[:-1], path[-1]
    if index >= split:
        return sha(b"\1" + last + root_of(leaf, index - split, size - split, path))
    return sha(b"\1" + root_of(leaf, index, split, path) + last)

def included(shown, leaf, index, path):
    """Takes the subtree of a leaf from those shown, and adds those that its path has after it."""
    while shown and shown[-1][1] <= index:
        shown.pop()
    need(shown and shown[-1][0] <= index, "a leaf is not in the tree, or not after the one before")
    low, high, root = shown.pop()
    right = root_of(leaf, index - low, high - low, path) == root
    need(right, f"the tree has another event at leaf {index}")
    while high - low > 1:
        split, after = low + (1 << (high - low - 1).bit_length() - 1), path.pop()
        shown += [(split, high, after)] if index < split else []
        low, high = (low, split) if index < split else (split, high)

def roots_of(old, size, low, high, path):
    """The roots of an older and a newer tree that a proof leads to (RFC 9162, 2.1.4.2)."""
    if size == high:
        need(len(path) == (low > 0), "the consistency proof is not of these trees")
        return (path or [old]) * 2
    need(path, "the consistency proof is too short")
    split, last = low + (1 << (high - low - 1).bit_length() - 1), path[-1]
    if size <= split:
        before, after = roots_of(old, size, low, split, path[:-1])
        return before, sha(b"\1" + after + last)
    return [sha(b"\1" + last + one) for one in roots_of(old, size, split, high, path[:-1])]

def older(text, size, root):
    """Size and root of the tree that this one extends, as the file `consistency` shows."""
    at, *lines = text.split("\n")
    need(re.fullmatch("0|[1-9][0-9]*", at) and lines.pop() == "", "the consistency proof is none")
    (old, *path), at = hashes(lines), int(at)
    both = at <= size and (list(roots_of(old, at, 0, size, path)) if at else [sha(b""), root])
    need(both == [old, root] and (at or not path), "the tree does not extend the older one")
    return at, old

def number(text):
    """A number as RFC 8785 writes it."""
    value = (Decimal(repr(float(text))) + 0).normalize()
    power = value.adjusted()
    return f"{value:f}" if -7 < power < 21 else f"{value.scaleb(-power):f}e{power:+d}"

def canonical(value, seen=None):
    """RFC 8785; with `seen`, of each text its commitment alone, which is what hashes cover."""
    if isinstance(value, dict):
        fit = [type(value.get("salt", "")), type(value.get("text", "")), value.get("erased", True)]
        kind = seen is not None and fit == [str, str, True] and KINDS.get(" ".join(sorted(value)))
        if kind and re.fullmatch("[0-9a-f]{64}", str(value["sha256"])):
            seen[kind] = seen.get(kind, 0) + 1
            if kind == "disclosed":
                right = re.fullmatch("[A-Za-z0-9_-]{22}", value["salt"])
                salted = urlsafe_b64decode(value["salt"] + "==") + value["text"].encode()
                need(right and sha(salted).hex() == value["sha256"], "a text is not the one due")
            value = {"sha256": value["sha256"]}
        members = sorted(value.items(), key=lambda member: member[0].encode("utf-16-be"))
        return "{" + ",".join(canonical(k) + ":" + canonical(v, seen) for k, v in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(canonical(one, seen) for one in value) + "]"
    return number(value) if isinstance(value, Number) else plain(value)

def is_plain(data):
    """Whether data has a text that is not protected."""
    data = data if isinstance(data, dict) else {}
    labels = data["labels"] if isinstance(data.get("labels"), list) else []
    names = [one.get(name) for one in labels if isinstance(one, dict) for name in ("name", "value")]
    return any(type(one) is str for one in [data.get(name) for name in TEXTS] + names)

def head_of(tar, length, stream, seen, tree):
    """The hash of the last event, how many there are, and its leaf, when all of them fit."""
    before, count, index, shown = "0" * 64, 0, -1, [(0, *tree)]
    while text := tar.readline(min(length, 4_194_304)):
        line = json.loads(text, parse_int=Number, parse_float=Number)
        right = canonical(line).encode() + b"\n" == text and " ".join(line) == "event hashes leaf"
        event, right = line["event"], right and re.fullmatch("0|[1-9][0-9]*", line["leaf"])
        claimed, after = (event["metadata"].pop(name) for name in ("hash", "prev_hash"))
        right = right and type(line["leaf"]) is Number and sorted(event) == MEMBERS
        right = right and (event["stream"], canonical(event["revision"])) == (stream, str(count))
        need(right and after == before, f"revision {count} is not what comes next, as JCS")
        parts = (f'"{k}":' + canonical(event[k], seen if k == "data" else None) for k in MEMBERS)
        before = sha((before + "{" + ",".join(parts) + "}").encode()).hex()
        need(before == claimed, f"revision {count}: its hash does not match its content")
        need(not seen or not is_plain(event["data"]), f"revision {count}: a text is not protected")
        index = int(line["leaf"])
        leaf = sha(b"\0" + f'{{"hash":"{before}","index":{index}}}'.encode())
        included(shown, leaf, index, hashes(line["hashes"]))
        count, length = count + 1, length - len(text)
    return before, count, index

def verify(file, vkey, known=None):
    files, seen = {}, {}
    with open(file, "rb") as tar:
        for name in NAMES:
            head = tar.read(512)
            right = re.fullmatch(re.escape(name).encode() + TAR, head)
            right = right and int(head[148:154], 8) == sum(head[:148] + head[156:]) + 256
            length, _time = (int(one, 8) for one in head[124:148].split())
            need(right and (length <= 65_536 or name == NAMES[-1]), f"{name} is no such file")
            if name == NAMES[-1]:
                session = json.loads(files["manifest"])["session_id"]
                size, root = tree = opened(files["checkpoint"], vkey)
                head, count, last = head_of(tar, length, "session-" + session, seen, tree)
            files[name] = name != NAMES[-1] and tar.read(length).decode()
            need(not any(tar.read(-length % 512)), "something is between the files")
        need(count > 0 and tar.read(1025) == bytes(1024), "there are no events, or other files")
    about = f'{{"events":{count},"session_id":{plain(session)},"turnlog_bundle":2}}\n'
    need(files["manifest"] == about, "the manifest says other things")
    proof, _, checkpoint = files["session.tlog-proof"].partition("\n\n")
    said = re.fullmatch("c2sp.org/tlog-proof@v1\nindex (0|[1-9][0-9]*)((?:\n.{42}[^=]=)*)", proof)
    need(said and checkpoint == files["checkpoint"], "the proof is none, or not of the checkpoint")
    leaf = sha(b"\0" + f'{{"hash":"{head}","index":{last}}}'.encode())
    right = int(said[1]) == last and root_of(leaf, last, size, hashes(said[2].split())) == root
    need(right, "the last event is not in the tree of the checkpoint")
    trees = [tree] + ([older(files["consistency"], *tree)] if files["consistency"] else [])
    if known:
        with open(known, encoding="utf-8", newline="") as note:
            need(opened(note.read(), vkey) in trees, "the bundle is not of the checkpoint given")
    return f"All fits: {count} events, the last one is leaf {last} of {size}. Texts: {seen}"

if __name__ == "__main__":
    try:
        print(verify(*sys.argv[1:]) if len(sys.argv) in (3, 4) else sys.exit(print(__doc__) or 2))
    except Exception as misfit:
        why = "an event is nested too deep" if isinstance(misfit, RecursionError) else misfit
        sys.exit(f"It does not fit: {why}")

#!/usr/bin/env python3
"""Verifies what `audit export` wrote: python3 verify_bundle.py bundle.tar <vkey>

Standard library only; docs/proof.md specifies the format. It does not check cosignatures of
witnesses, nor that the checkpoint is the newest, nor that the session has not gone on since.
Exit code 0: all of it fits. 1: what does not fit is named. 2: how to call it.
"""
import hashlib, json, re, sys, tarfile
from base64 import b64decode, b64encode, urlsafe_b64decode
from decimal import Decimal

NAMES = ["manifest", "vkey", "checkpoint", "session.tlog-proof", "events.jsonl"]
MEMBERS = ["data", "id", "metadata", "revision", "stream", "type"]
KINDS = {"sha256": "redacted", "salt sha256 text": "disclosed", "erased sha256": "erased"}
Number = type("Number", (str,), {})  # as it is written
SMALL, LINE = 65_536, 4_194_304  # the most bytes of a small file, and of an event
sha = lambda data: hashlib.sha256(data).digest()
P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D, SQRT = -121665 * pow(121666, -1, P) % P, pow(2, (P - 1) // 4, P)

def need(holds, why):
    if not holds:
        raise ValueError(why)

def base64(text):
    data = b64decode(text)
    need(b64encode(data).decode() == text, "base64 is not as it is written in one way only")
    return data

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
    origin, size, root = text.split("\n")[:3]
    need(right and origin == name, "the vkey is none of Ed25519, or not the log's")
    need(lines.endswith("\n") and not re.search("[\0-\t\v-\x1f]", note), "it is no signed note")
    lines = [re.fullmatch("\u2014 ([^ +]+) ([^ ]+)", one).groups() for one in lines[:-1].split("\n")]
    mine = [one for who, one in ((who, base64(one)) for who, one in lines) if who == name]
    mine = [one[4:] for one in mine if one[:4] == hint]
    right = len(mine) == 1 and signed(key[1:], text.encode() + b"\n", mine[0])
    need(right, "the checkpoint is not signed by the vkey")
    need(re.fullmatch("0|[1-9][0-9]*", size), "the size of the tree is no number")
    return int(size), base64(root)

def root_of(leaf, node, size, path):
    """The root that a leaf and its inclusion path lead to (RFC 9162, 2.1.3.2)."""
    need(0 <= node < size, "the proof's index is not in the tree")
    last = size - 1
    for sibling in path:
        need(last > 0, "the proof is too long")
        if node % 2 or node == last:
            leaf = sha(b"\1" + sibling + leaf)
            while node % 2 == 0 and node:
                node, last = node >> 1, last >> 1
        else:
            leaf = sha(b"\1" + leaf + sibling)
        node, last = node >> 1, last >> 1
    return leaf if last == 0 else need(False, "the proof is too short")

def number(text):
    """A number as RFC 8785 writes it."""
    sign, digits, power = Decimal(repr(float(text))).normalize().as_tuple()
    whole, digits = "-" * (sign and any(digits)), "".join(map(str, digits))
    point = len(digits) + power
    if not -6 < point <= 21:
        return f"{whole}{digits[0]}{'.' * (len(digits) > 1)}{digits[1:]}e{point - 1:+d}"
    digits = "0" * (1 - point) + digits.ljust(point, "0")
    point = max(point, 1)
    return whole + digits[:point] + "." * (len(digits) > point) + digits[point:]

def canonical(value, seen=None):
    """RFC 8785; with `seen`, of each text its commitment alone, which is what hashes cover."""
    if isinstance(value, dict):
        kind = KINDS.get(" ".join(sorted(value)), "") if seen is not None else ""
        kind = kind if value.get("erased", True) is True else ""
        if kind and re.fullmatch("[0-9a-f]{64}", str(value["sha256"])):
            seen[kind] = seen.get(kind, 0) + 1
            if kind == "disclosed":
                need(re.fullmatch("[A-Za-z0-9_-]{22}", value["salt"]), "a salt is not 16 bytes")
                salted = urlsafe_b64decode(value["salt"] + "==") + value["text"].encode()
                right = sha(salted).hex() == value["sha256"]
                need(right, "a text is not the one that was committed to")
            value = {"sha256": value["sha256"]}
        members = sorted(value.items(), key=lambda member: member[0].encode("utf-16-be"))
        return "{" + ",".join(canonical(k) + ":" + canonical(v, seen) for k, v in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(canonical(one, seen) for one in value) + "]"
    if isinstance(value, Number):
        return number(value)
    return json.dumps(value, ensure_ascii=False, allow_nan=False)

def head_of(lines, stream, seen):
    """The hash of the last event, and how many there are, when all of them fit the chain."""
    before, count = "0" * 64, 0
    for line in iter(lambda: lines.readline(LINE), b""):
        event = json.loads(line, parse_int=Number, parse_float=Number)
        right = canonical(event).encode() + b"\n" == line and sorted(event) == MEMBERS
        claimed, after = (event["metadata"].pop(name) for name in ("hash", "prev_hash"))
        right = right and (event["stream"], event["revision"]) == (stream, str(count))
        need(right and after == before, f"revision {count} is not what comes next, as JCS")
        parts = (f'"{k}":' + canonical(event[k], seen if k == "data" else None) for k in MEMBERS)
        before = sha((before + "{" + ",".join(parts) + "}").encode()).hex()
        need(before == claimed, f"revision {count}: its hash does not match its content")
        count += 1
    return before, count

def verify(file, vkey):
    files, seen = {}, {}
    with tarfile.open(file, "r|") as tar:
        for name in NAMES:
            member = tar.next()
            right = member and member.name == name and member.type in (b"0", b"\0")
            right = right and not member.pax_headers
            need(right and (member.size <= SMALL or name == NAMES[-1]), f"{name} is no such file")
            content = tar.extractfile(member)
            files[name] = content.read().decode() if name != NAMES[-1] else None
        about = json.loads(files["manifest"])
        head, count = head_of(content, "session-" + about["session_id"], seen)
        need(count > 0 and not tar.next(), "there are no events, or other files")
    about = {"events": Number(count), "session_id": about["session_id"], "turnlog_bundle": Number(1)}
    need(files["manifest"] == canonical(about) + "\n", "the manifest says other things")
    proof, _, checkpoint = files["session.tlog-proof"].partition("\n\n")
    version, index, *path = proof.split("\n")
    right = version == "c2sp.org/tlog-proof@v1" and checkpoint == files["checkpoint"]
    need(right, "the proof is not of the checkpoint")
    need(re.fullmatch("index (0|[1-9][0-9]*)", index), "the proof has no index")
    size, root, index = *opened(checkpoint, vkey), int(index.removeprefix("index "))
    leaf = sha(b"\0" + f'{{"hash":"{head}","index":{index}}}'.encode())
    path = [base64(one) for one in path]
    right = all(len(one) == 32 for one in path) and root_of(leaf, index, size, path) == root
    need(right, "the last event is not in the tree of the checkpoint")
    return f"All fits: {count} events, the last one is leaf {index} of {size}. Texts: {seen}"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(print(__doc__) or 2)
    try:
        print(verify(*sys.argv[1:]))
    except Exception as misfit:
        sys.exit(f"It does not fit: {misfit}")

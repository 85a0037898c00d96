// Writes the vectors that shared/transparency/tlog is compared with: go run . > vectors.json
package main

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const leaves = 1300

type key struct{ Name, Seed, Vkey string }
type signed struct {
	Text, Note string
	Vkeys      []string
}
type refused struct{ Why, Note string }
type tree struct {
	Size int64
	Root string
}
type proof struct {
	Index, Size int64
	Hashes      []string
}
type path struct {
	Level, Index int64
	Width        int
	Path         string
}

type vectors struct {
	Keys                   []key
	Notes                  []signed
	Refused                []refused
	Trees                  []tree
	Inclusion, Consistency []proof
	Paths                  []path
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func base64s(hashes []tlog.Hash) []string {
	texts := []string{}
	for _, hash := range hashes {
		texts = append(texts, hash.String())
	}
	return texts
}

func keysAndNotes(out *vectors) {
	var signers []note.Signer
	var verifiers []note.Verifier
	for at, name := range []string{"turnlog/0190", "log.example/prüfung", "w"} {
		seed := bytes.Repeat([]byte{byte(at + 1)}, ed25519.SeedSize)
		skey, vkey, err := note.GenerateKey(bytes.NewReader(seed), name)
		if err != nil {
			panic(err)
		}
		signers = append(signers, must(note.NewSigner(skey)))
		verifiers = append(verifiers, must(note.NewVerifier(vkey)))
		out.Keys = append(out.Keys, key{name, hex.EncodeToString(seed), vkey})
	}
	texts := []string{"a\n", "two\n\nparagraphs, ä and 🪵\n", "\n", "turnlog/0190\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"}
	for at, text := range texts {
		n := at%len(signers) + 1
		msg := must(note.Sign(&note.Note{Text: text}, signers[:n]...))
		var vkeys []string
		for _, key := range out.Keys[:n] {
			vkeys = append(vkeys, key.Vkey)
		}
		out.Notes = append(out.Notes, signed{text, string(msg), vkeys})
	}
	good := out.Notes[0].Note
	line := good[strings.LastIndex(good, "— "):]
	bad := []refused{
		{"no empty line", "a\n" + line},
		{"no signature", "a\n\n"},
		{"another text", strings.Replace(good, "a\n", "b\n", 1)},
		{"no newline at the end", strings.TrimSuffix(good, "\n")},
		{"a hyphen in place of the dash", strings.Replace(good, "— ", "- ", 1)},
		{"a tab in the text", strings.Replace(good, "a\n", "a\t\n", 1)},
		{"no base64", strings.Replace(good, "— turnlog/0190 ", "— turnlog/0190 *", 1)},
		{"a plus in the name", strings.Replace(good, "turnlog/0190", "turn+log", 1)},
		{"an id and nothing more", "a\n\n— turnlog/0190 " + base64.StdEncoding.EncodeToString([]byte{1, 2, 3, 4}) + "\n"},
		{"another key's name", strings.Replace(good, "turnlog/0190", "turnlog/0191", 1)},
	}
	for _, each := range bad {
		if _, err := note.Open([]byte(each.Note), note.VerifierList(verifiers[0])); err == nil {
			panic(each.Why + " is not refused")
		}
	}
	out.Refused = bad
}

func main() {
	var out vectors
	keysAndNotes(&out)

	var stored []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		var hashes []tlog.Hash
		for _, index := range indexes {
			hashes = append(hashes, stored[index])
		}
		return hashes, nil
	})
	for at := int64(0); at < leaves; at++ {
		entry := fmt.Sprintf("entry %d", at)
		stored = append(stored, must(tlog.StoredHashes(at, []byte(entry), reader))...)
	}
	sizes := []int64{0, 1, 2, 3, 4, 5, 7, 8, 9, 255, 256, 257, 511, 512, 513, 1000, 1024, 1299, 1300}
	for _, size := range sizes {
		out.Trees = append(out.Trees, tree{size, must(tlog.TreeHash(size, reader)).String()})
		for _, index := range []int64{0, 1, size / 3, size / 2, size - 2, size - 1} {
			if index >= 0 && index < size {
				out.Inclusion = append(out.Inclusion, proof{index, size, base64s(must(tlog.ProveRecord(size, index, reader)))})
			}
		}
		for _, from := range sizes {
			if from > 0 && from <= size {
				out.Consistency = append(out.Consistency, proof{from, size, base64s(must(tlog.ProveTree(size, from, reader)))})
			}
		}
	}
	for _, index := range []int64{0, 5, 999, 1000, 1234067, 999999999} {
		for level, width := range []int{256, 1, 255} {
			tile := tlog.Tile{H: 8, L: level, N: index, W: width}
			// C2SP leaves the height out of the path.
			named := strings.Replace(tile.Path(), "tile/8/", "tile/", 1)
			out.Paths = append(out.Paths, path{int64(level), index, width, named})
		}
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(out); err != nil {
		panic(err)
	}
}

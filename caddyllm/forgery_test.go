package caddyllm

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prompt"
	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// What wyhash mixes into the first two words of each of its lanes before it
// multiplies them. As the product is folded, they can change places.
var lanes = [3][2]uint64{
	{0x8bb84b93962eacc9, 0xca813bf4c7abf0a9},
	{0x4b33a62ed433d4a3, 0xca813bf4c7abf0a9},
	{0x4d5a2da51de1aa47, 0xca813bf4c7abf0a9},
}

// forge makes another block that has the hash of block. It is no text, but what
// stands in a string without an escape.
func forge(block []byte) []byte {
	for i, k := range lanes {
		forged := slices.Clone(block)
		first, second := forged[16*i:16*i+8], forged[16*i+8:16*i+16]
		x, y := binary.LittleEndian.Uint64(first)^k[0], binary.LittleEndian.Uint64(second)^k[1]
		binary.LittleEndian.PutUint64(first, y^k[0])
		binary.LittleEndian.PutUint64(second, x^k[1])
		if !bytes.ContainsAny(forged, `"\`) {
			return forged
		}
	}
	return block
}

func scanned(t *testing.T, seed uint64, salt, text string) prompt.Prompt {
	t.Helper()
	if salt != "" {
		salt = `"cache_salt":"` + salt + `",`
	}
	body := []byte(`{` + salt + `"model":"m","messages":[{"role":"user","content":"` + text + `"}]}`)
	s := prompt.Scanner{Seed: seed}
	p, status := s.Scan(prompt.Chat, body, true, defaultBlock)
	if status != prompt.OK {
		t.Fatalf("status %v", status)
	}
	p.Chain = slices.Clone(p.Chain)
	return p
}

// What a client can do at worst who makes up a prompt with the hashes of another
// client's: it is sent where that is, as long as that costs it nothing; it is
// answered by its own prompt, as its body is passed on as it came; the answer's
// cached tokens show that nothing was held; and with work in the way it goes
// elsewhere. Salts keep tenants apart all the same.
func TestWhatAForgedCollisionCanDo(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	victim := make([]byte, 8*defaultBlock)
	for i := range victim {
		victim[i] = byte('a' + rng.IntN(26))
	}
	want := scanned(t, 0, "", string(victim))
	// Where a block begins in the text isn't known: what comes before it in the
	// prompt has a length of its own. It is tried.
	var attack string
	for offset := range defaultBlock {
		text := slices.Clone(victim)
		for at := offset; at+defaultBlock <= len(text); at += defaultBlock {
			copy(text[at:], forge(text[at:at+defaultBlock]))
		}
		if p := scanned(t, 0, "", string(text)); slices.Equal(p.Chain[1:], want.Chain[1:]) && slices.Equal(p.Chain, want.Chain) {
			attack = string(text)
			break
		}
	}
	if attack == "" || attack == string(victim) {
		t.Fatal("no collision was found, though wyhash has them")
	}

	for name, pair := range map[string][2]prompt.Prompt{
		"another salt":  {scanned(t, 0, "a", string(victim)), scanned(t, 0, "b", attack)},
		"a salt":        {scanned(t, 0, "a", string(victim)), scanned(t, 0, "", attack)},
		"another state": {scanned(t, 0, "", string(victim)), scanned(t, 1, "", string(victim))},
	} {
		for i, h := range pair[0].Chain {
			if slices.Contains(pair[1].Chain, h) {
				t.Errorf("with %s they share block %d", name, i)
			}
		}
	}

	// A secret doesn't keep them apart: they collide under every seed.
	if !slices.Equal(scanned(t, 7, "", string(victim)).Chain, scanned(t, 7, "", attack).Chain) {
		t.Error("a seed tells them apart: options.md says that a secret doesn't")
	}

	r := route.New(route.Options{BlockBytes: defaultBlock, Seed: 1})
	targets := []route.Target{{ID: "a:1"}, {ID: "b:1"}, {ID: "c:1"}}
	now := time.Unix(1000, 0)
	request := func(p prompt.Prompt) *route.Request {
		q := routeRequest(&p)
		q.Stream = true
		return &q
	}
	serve := func(p prompt.Prompt, cached int) route.Choice {
		c, _ := r.Pick(now, request(p), targets)
		now = now.Add(100 * time.Millisecond)
		r.FirstByte(now, c.Ticket)
		now = now.Add(100 * time.Millisecond)
		r.Done(now, c.Ticket, route.Completed, &route.Usage{PromptTokens: c.PromptTokens, CompletionTokens: 10, CachedTokens: cached, CachedKnown: true})
		return c
	}
	forged := scanned(t, 0, "", attack)
	home := serve(want, 0)
	if c := serve(forged, 0); c.Index != home.Index || c.Reason != route.ReasonPrefix {
		t.Errorf("the forged prompt goes to %d for %s: this test would show nothing", c.Index, c.Reason)
	}
	// Its upstream isn't flooded: with work there, it goes elsewhere.
	elsewhere := 0
	var open []route.Choice
	for range 30 {
		c, _ := r.Pick(now, request(forged), targets)
		if c.Index != home.Index {
			elsewhere++
		}
		open = append(open, c)
	}
	if elsewhere < 10 {
		t.Errorf("of 30 forged prompts at once %d go elsewhere, want a share like any prompt's", elsewhere)
	}
	for _, c := range open {
		r.Done(now, c.Ticket, route.Cancelled, nil)
	}
	// A thousand lies later the victim's next turn is at home still.
	for range 1000 {
		serve(forged, 0)
	}
	next := scanned(t, 0, "", string(victim)+strings.Repeat(" and then", 40))
	if c := serve(next, want.Bytes/4); c.MatchedBlocks == 0 {
		t.Error("after a thousand forged prompts the victim's conversation is forgotten")
	}
}

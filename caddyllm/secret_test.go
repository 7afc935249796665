package caddyllm

import "testing"

// A secret is part of what gives hashes their meaning, gateways of equal names
// and secrets agree on them, and nothing that is shown tells it.
func TestSecretSeedsHashes(t *testing.T) {
	t.Setenv("PROMPT_SECRET", "hush")
	sown := func(state, secret string) settings {
		t.Helper()
		s := settings{state: state, block: defaultBlock, memory: minMemory}
		if err := s.sow(secret); err != nil {
			t.Fatal(err)
		}
		return s
	}
	plain, other, secret := sown("a", ""), sown("b", ""), sown("a", "hush")
	if plain.seed == other.seed || plain.seed == secret.seed || plain.mark != "" || secret.mark == "" {
		t.Errorf("seeds %x, %x, %x, marks %q, %q: want unlike seeds, and a mark of the secret alone", plain.seed, other.seed, secret.seed, plain.mark, secret.mark)
	}
	if again := sown("a", "{env.PROMPT_SECRET}"); again.seed != secret.seed || again.mark != secret.mark {
		t.Error("a placeholder's value isn't the secret")
	}
	for _, missing := range []string{"{env.NO_SUCH_SECRET}", "{http.request.header.X}"} {
		if err := new(settings).sow(missing); err == nil {
			t.Errorf("%s is no secret, and yet is taken", missing)
		}
	}
	a, err := loadState(plain)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.release() }()
	b, err := loadState(secret)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.release() }()
	if a == b {
		t.Error("policies with and without a secret share what they learn")
	}
}

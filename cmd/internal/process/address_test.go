package process

import "testing"

// Two Caddys at one address would share it and tell nobody, so no call gives an
// address that another gave, whatever the system does.
func TestNoAddressIsGivenTwice(t *testing.T) {
	seen := make(map[string]bool)
	for range 2000 {
		a, err := FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		if seen[a] {
			t.Fatalf("%s is given again", a)
		}
		seen[a] = true
	}
}

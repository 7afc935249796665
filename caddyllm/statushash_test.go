package caddyllm

import (
	"strconv"
	"testing"
)

// Goldens have what is shown of hashes, so the key of all tests is the same.
func init() { shownKey = [32]byte{} }

// Nobody can tell from what is shown whether a guessed prompt is right.
func TestShownHashesAreKeyed(t *testing.T) {
	const hash = 0x51741a4e0c5b3eaf
	defer func(old [32]byte) { shownKey = old }(shownKey)
	first := shown(hash)
	if again := shown(hash); again != first || first == strconv.FormatUint(hash, 16) || shown(hash+1) == first {
		t.Errorf("shown as %s, again %s, another as %s", first, again, shown(hash+1))
	}
	shownKey[0]++
	if shown(hash) == first {
		t.Error("another process shows the same")
	}
}

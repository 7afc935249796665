package prefix

import "testing"

// The values are those of the author's own program.
func TestWyhashIsWyhash(t *testing.T) {
	data := make([]byte, 1024)
	for i := range data {
		data[i] = byte(i)
	}
	for n, want := range map[int]uint64{
		48: 0xecbfb7ff9e3d9a97, 49: 0x0691f11bac523a91, 63: 0x907220c8cff2e2c7, 64: 0xe0fe4c75f61d710d,
		65: 0x74602394786a8035, 95: 0xa39f0af73a3eee99, 96: 0x948137d69794b570, 97: 0x2501575738d109be,
		111: 0x869baaa70c652386, 128: 0x693d6d731c86b2ee, 129: 0x681978fad3f15d26, 255: 0x530ea0c8a69bb188,
		256: 0x139c96a974ad43cb, 511: 0x8924f6a37b55f704, 1024: 0x804dd1e6f38e5361,
	} {
		if got := wyhash(data[:n]); got != want {
			t.Errorf("wyhash of %d bytes is %#x, want %#x", n, got, want)
		}
	}
}

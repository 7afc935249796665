package prefix

// The buckets grow one at a time (linear hashing, Litwin 1980): bucket b of a
// round splits into b and b + 1<<level, in order, and an address below the
// split point uses one bit more.

const firstLevel = 6

func (x *Index) bucketCount() int { return 1<<x.level + int(x.split) }

func (x *Index) address(key uint32) uint32 {
	b := key & (1<<x.level - 1)
	if b < x.split {
		b = key & (1<<(x.level+1) - 1)
	}
	return b
}

func (x *Index) bucket(b uint32) *uint32 { return &x.buckets[b>>slabBits][b&(slabSize-1)] }

func (x *Index) head(key uint32) uint32 { return *x.bucket(x.address(key)) }

// addBuckets makes buckets up to n addressable.
func (x *Index) addBuckets(n int) {
	for len(x.buckets)<<slabBits < n {
		x.buckets = append(x.buckets, new([slabSize]uint32))
	}
}

// grow keeps the buckets as many as the entries.
func (x *Index) grow() {
	for x.taken > x.bucketCount() {
		x.splitBucket()
	}
}

func (x *Index) splitBucket() {
	old := x.split
	x.addBuckets(x.bucketCount() + 1)
	if x.split++; x.split == 1<<x.level {
		x.level, x.split = x.level+1, 0
	}
	e := *x.bucket(old)
	*x.bucket(old) = none
	for e != none {
		following := x.at(e).chain
		x.chain(e)
		e = following
	}
}

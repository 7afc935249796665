package prompt

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// Keys of all lengths, few and many, with and without one that comes twice, in
// objects within objects.
func TestKeysThatComeTwiceAgreeWithTheTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 11))
	var s Scanner
	for _, n := range []int{0, 1, 2, 8, fewKeys - 1, fewKeys, fewKeys + 1, 100} {
		for range 40 {
			key := func(i int) string { return strings.Repeat("k", r.IntN(24)) + fmt.Sprint(i) }
			var members []string
			for i := range n {
				value := []string{`1`, `"v"`, `{"a":1,"b":{}}`, `[{"a":1},{"a":2}]`, `{"a":1,"a":2}`}[r.IntN(5-r.IntN(2))]
				members = append(members, quoted(key(i))+`:`+value)
			}
			if n > 1 && r.IntN(2) == 0 {
				members = append(members, members[r.IntN(n)])
			}
			r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
			object := `{` + strings.Join(members, ",") + `}`
			compare(t, &s, Chat, []byte(`{"tools":[{"name":"f","parameters":`+object+`}],"messages":[{"role":"user","content":"hi"}]}`))
		}
	}
}

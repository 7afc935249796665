package gateway

import "testing"

func TestSumOfSeries(t *testing.T) {
	const page = "# TYPE a gauge\na{x=\"1\"} 2\na{x=\"2 3\"} 0.5\nab 7\na 1\n"
	if got, err := sum(page, "a"); err != nil || got != 3.5 {
		t.Errorf("sum = %v, %v, want 3.5", got, err)
	}
	if _, err := sum("a x\n", "a"); err == nil {
		t.Error("no number is taken for one")
	}
	if got, err := number("x\n# HeapAlloc = 42\n", "# HeapAlloc = "); err != nil || got != 42 {
		t.Errorf("number = %v, %v, want 42", got, err)
	}
	if _, err := number("x\n", "y"); err == nil {
		t.Error("a number that isn't there is found")
	}
}

package process

import (
	"fmt"
	"net"
	"time"
)

// FreeAddress finds a port of 127.0.0.1 that was free a moment ago, for programs
// that can't tell which one they got when asked for any. Should another program
// be faster, theirs fails to start and says so.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// Answers says whether something takes connections at the address.
func Answers(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

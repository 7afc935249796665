package process

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// given are the addresses that FreeAddress has told of.
var given sync.Map

// FreeAddress finds a port of 127.0.0.1 that was free a moment ago, for programs
// that can't tell which one they got when asked for any; each call finds another
// one, as two Caddys would share a port without a word. Should a program that
// shares none be faster, theirs fails to start and says so.
func FreeAddress() (string, error) {
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", fmt.Errorf("looking for a free port: %w", err)
		}
		address := l.Addr().String()
		l.Close()
		if _, again := given.LoadOrStore(address, true); !again {
			return address, nil
		}
	}
	return "", errors.New("looking for a free port: all were given before")
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

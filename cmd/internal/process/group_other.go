//go:build !unix

package process

import (
	"os"
	"syscall"
)

// Without process groups the children themselves are all that can be ended.
func ownGroup() *syscall.SysProcAttr { return nil }

func interruptGroup(p *os.Process) { _ = p.Kill() }
func killGroup(p *os.Process)      { _ = p.Kill() }

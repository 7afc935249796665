package prompt

import (
	"bytes"
	"strings"
)

// Stores of objects sign an address anew each time it is given out: a chat's
// picture comes by another one with every turn, and is the same for the engine,
// which tells pictures apart by what they show.

// signatures are parameters that only a signed address has.
var signatures = []string{"x-amz-signature", "x-goog-signature", "x-oss-signature", "x-cos-signature", "q-signature", "signature", azureSignature}

// Other parameters that go with a signature: by the start of their names, and
// by the whole. Azure's are so short that others have them too.
var (
	signedWith = []string{"x-amz-", "x-goog-", "x-oss-", "x-cos-", "q-"}
	signedBy   = []string{"expires", "policy", "key-pair-id", "awsaccesskeyid", "googleaccessid", "ossaccesskeyid", "security-token"}
	azureWith  = []string{"se", "st", "sp", "sv", "sr", "sip", "spr", "ske", "skt", "sks", "skv", "skoid", "sktid"}
	// shownBy say what is made of a picture: cut out of it, say.
	shownBy = []string{"x-oss-process"}
)

const azureSignature, azureVersion = "sig", "sv"

// unsigned feeds a signed address without its signature, and reports false for
// all else.
func (s *Scanner) unsigned(v span) bool {
	address := s.headOf(v)
	if !bytes.HasPrefix(address, []byte("http")) || len(s.inside(v)) > mediaHead {
		return false
	}
	path, query, ok := bytes.Cut(address, []byte{'?'})
	if !ok || !has(query, signatures) {
		return false
	}
	azure := isAzure(query)
	s.mark(lString)
	s.emit(path)
	for parameter := range bytes.SplitSeq(query, []byte{'&'}) {
		if !ofSignature(parameter, azure) {
			s.emit([]byte{'&'})
			s.emit(parameter)
		}
	}
	return true
}

// has reports whether a query has a parameter of one of some names.
func has(query []byte, names []string) bool {
	for parameter := range bytes.SplitSeq(query, []byte{'&'}) {
		if among(parameter, names) {
			return true
		}
	}
	return false
}

func isAzure(query []byte) bool {
	return has(query, []string{azureSignature}) && has(query, []string{azureVersion})
}

func ofSignature(parameter []byte, azure bool) bool {
	switch {
	case among(parameter, signatures), among(parameter, signedBy), azure && among(parameter, azureWith):
		return true
	case among(parameter, shownBy):
		return false
	}
	for _, start := range signedWith {
		if len(parameter) > len(start) && strings.EqualFold(string(parameter[:len(start)]), start) {
			return true
		}
	}
	return false
}

func among(parameter []byte, names []string) bool {
	name, _, _ := bytes.Cut(parameter, []byte{'='})
	for _, n := range names {
		if len(name) == len(n) && strings.EqualFold(string(name), n) {
			return true
		}
	}
	return false
}

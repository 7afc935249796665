package prompt

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
)

// node is a JSON value as encoding/json reads it, with all members of an
// object in order, duplicates included.
type node struct {
	kind    byte // one of { [ " and 0 for scalars
	text    string
	raw     string
	keys    []string
	members []*node
}

// tree reads a whole body with encoding/json.
func tree(body []byte) (*node, bool) {
	if !json.Valid(body) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	n, err := branch(d, body)
	if err != nil {
		return nil, false
	}
	_, err = d.Token()
	return n, err == io.EOF
}

func branch(d *json.Decoder, body []byte) (*node, error) {
	from := int(d.InputOffset())
	from += len(body[from:]) - len(bytes.TrimLeft(body[from:], " \n\t\r,:"))
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	n := &node{}
	switch v := token.(type) {
	case json.Delim:
		n.kind = byte(v)
		for d.More() {
			if n.kind == '{' {
				key, err := d.Token()
				if err != nil {
					return nil, err
				}
				n.keys = append(n.keys, key.(string))
			}
			m, err := branch(d, body)
			if err != nil {
				return nil, err
			}
			n.members = append(n.members, m)
		}
		if _, err := d.Token(); err != nil {
			return nil, err
		}
	case string:
		n.kind, n.text = '"', v
	}
	n.raw = string(body[from:d.InputOffset()])
	return n, nil
}

// unique are the places of an object's members, of duplicates the first place
// with the last value, as in a dict of Python.
func (n *node) unique() (keys []string, members []*node) {
	for i, key := range n.keys {
		if at := slices.Index(keys, key); at >= 0 {
			members[at] = n.members[i]
			continue
		}
		keys, members = append(keys, key), append(members, n.members[i])
	}
	return keys, members
}

func (n *node) is(kind byte) bool { return n != nil && n.kind == kind }
func (n *node) present() bool     { return n != nil && n.raw != "null" }
func (n *node) says() bool        { return n.present() && n.raw != `""` }

func (n *node) hollow() bool { return (n.is('{') || n.is('[')) && len(n.members) == 0 }
func (n *node) tells() bool  { return n.says() && !n.hollow() }

// fieldsOf is an object's members by field, the last of duplicates; of several
// names for one field, those that say nothing leave it to another.
func fieldsOf[F ~uint8](n *node, of func([]byte) F) map[F]*node {
	m, names := map[F]*node{}, map[F]string{}
	for i, key := range n.keys {
		f := of([]byte(key))
		if name, ok := names[f]; f != 0 && (!ok || name == key || n.members[i].tells()) {
			m[f], names[f] = n.members[i], key
		}
	}
	return m
}

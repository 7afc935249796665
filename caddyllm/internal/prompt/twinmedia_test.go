package prompt

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// picture writes a part that is no text, or only its name.
func (w *twin) picture(f map[partField]*node) bool {
	id := f[pUUID]
	for i, from := range []partField{pImage, pAudio, pVideo, pFile} {
		if holds(f[from]) {
			w.media("iavF"[i], f[from], id)
			return true
		}
	}
	if !id.is('"') || id.text == "" || !f[pType].is('"') {
		return false
	}
	letter, ok := map[string]byte{"image_url": 'i', "audio_url": 'a', "input_audio": 'a', "video_url": 'v'}[f[pType].text]
	if ok {
		w.media(letter, id, id)
	}
	return ok
}

// holds reports whether an attachment has an address, data, or at least something
// that is nested.
func holds(n *node) bool {
	if !n.is('{') {
		return n.tells()
	}
	places, told := 0, 0
	for i, key := range n.keys {
		m := n.members[i]
		place := slices.Contains([]string{"url", "data", "file_data", "file_id", "file_url"}, key)
		if place {
			places++
		}
		if (place || m.is('{') || m.is('[')) && m.tells() {
			told++
		}
	}
	return told > 0 || places == 0 && len(n.members) > 0
}

func (w *twin) images(n *node) { w.attachments('i', n) }

func (w *twin) attachments(letter byte, n *node) {
	all := []*node{n}
	if n.is('[') {
		all = n.members
	}
	for _, n := range all {
		if n.present() {
			w.media(letter, n, nil)
		}
	}
}

func (w *twin) embeds(e *node) {
	if !e.present() {
		return
	}
	var alone twin
	alone.value(e)
	w.mark('e')
	w.out.Write(binary.BigEndian.AppendUint64(nil, xxhash.Sum64(alone.out.Bytes())))
	w.extra += len(e.raw) / embedBytes
	w.found = true
}

func (w *twin) media(letter byte, n, id *node) {
	payload := n
	if id.is('"') && id.text != "" {
		payload = id
	}
	if payload.is('{') {
		for i, key := range payload.keys {
			switch key {
			case "url", "data", "file_data", "file_id", "file_url":
				if n.members[i].is('"') && n.members[i].says() {
					payload = n.members[i]
				}
			}
		}
	}
	head := ""
	if payload.is('"') {
		head = payload.text[:min(len(payload.text), mediaHead)]
	}
	w.extra += mediaTokens(letter, []byte(head), len(payload.raw)-2)
	var alone twin
	if address, query, ok := strings.Cut(payload.text, "?"); ok && payload != id && strings.HasPrefix(address, "http") && len(payload.raw)-2 <= mediaHead && has([]byte(query), signatures) {
		alone.mark('"')
		alone.out.WriteString(address)
		for parameter := range strings.SplitSeq(query, "&") {
			if !ofSignature([]byte(parameter), isAzure([]byte(query))) {
				alone.out.WriteString("&" + parameter)
			}
		}
	} else {
		alone.value(payload)
	}
	w.mark(letter)
	w.out.Write(binary.BigEndian.AppendUint64(nil, xxhash.Sum64(alone.out.Bytes())))
	w.found = true
}

package prompt

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
)

// What one attachment adds to a prompt, tokens, where its data don't tell. The
// true number depends on the model; these are the middle of what open models
// take, and only weigh a request.
const (
	// Gemma 3 takes 256 for each image, LLaVA 1.5 takes 24×24 = 576, Qwen2-VL
	// one for each 28×28 pixels: 1,369 for an image of 1036×1036.
	imageTokens = 600
	// Qwen2-Audio takes 25 each second of its window of 30 s.
	audioTokens = 750
	// vLLM takes 32 frames of a video unless told otherwise; LLaVA-NeXT-Video
	// has 12×12 tokens for each.
	videoTokens = 32 * 144
	// Files are rendered to text or to images by the engine.
	fileTokens = imageTokens
)

const (
	// tokenPixels is the side of the square that is a token for Qwen2-VL and
	// its kin, pixels; they shrink images of more than maxImageTokens.
	tokenPixels    = 28
	maxImageTokens = 16384
	// audioRate is Qwen2-Audio's, tokens per second, and compressedRate that of
	// MP3 at 128 kbit/s, bytes per second.
	audioRate      = 25
	compressedRate = 16000
	maxAudioTokens = 1 << 16
	// mediaHead is how much of an attachment is looked into, bytes of base64.
	// The size of a picture is nearly always in it.
	mediaHead = 4096
)

// mediaTokens estimates the tokens of an attachment from the start of its text
// and from the text's length.
func mediaTokens(letter byte, head []byte, length int) int {
	var buf [mediaHead]byte
	encoded := head
	if i := bytes.Index(head[:min(len(head), 128)], []byte("base64,")); i >= 0 {
		encoded = head[i+len("base64,"):]
	} else if bytes.Contains(head[:min(len(head), 16)], []byte(":")) {
		encoded = nil // an address
	}
	n, _ := base64.StdEncoding.Decode(buf[:], encoded[:len(encoded)&^3])
	data := buf[:n]
	switch letter {
	case lImage:
		if w, h := pictureSize(data); w > 0 && h > 0 {
			across, down := (w+tokenPixels-1)/tokenPixels, (h+tokenPixels-1)/tokenPixels
			return min(across*down, maxImageTokens)
		}
		return imageTokens
	case lAudio:
		if len(data) < 44 {
			return audioTokens
		}
		rate := compressedRate
		if bytes.HasPrefix(data, []byte("RIFF")) {
			rate = max(int(binary.LittleEndian.Uint32(data[28:])), 1)
		}
		return min(length/4*3/rate*audioRate+audioRate, maxAudioTokens)
	case lVideo:
		return videoTokens
	}
	return fileTokens
}

// pictureSize reads width and height from the head of a PNG, JPEG, GIF or WebP
// file, pixels; 0 if they aren't there.
func pictureSize(data []byte) (width, height int) {
	big, little := binary.BigEndian, binary.LittleEndian
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")) && len(data) >= 24:
		return int(big.Uint32(data[16:])), int(big.Uint32(data[20:]))
	case bytes.HasPrefix(data, []byte("GIF8")) && len(data) >= 10:
		return int(little.Uint16(data[6:])), int(little.Uint16(data[8:]))
	case bytes.HasPrefix(data, []byte("RIFF")) && len(data) >= 30:
		return webpSize(data)
	case bytes.HasPrefix(data, []byte{0xff, 0xd8}):
		return jpegSize(data)
	}
	return 0, 0
}

func webpSize(data []byte) (width, height int) {
	little := binary.LittleEndian
	switch string(data[8:16]) {
	case "WEBPVP8 ":
		return int(little.Uint16(data[26:]) & 0x3fff), int(little.Uint16(data[28:]) & 0x3fff)
	case "WEBPVP8L":
		packed := little.Uint32(data[21:])
		return int(packed&0x3fff) + 1, int(packed>>14&0x3fff) + 1
	case "WEBPVP8X":
		return int(little.Uint32(data[24:])&0xffffff) + 1, int(little.Uint32(data[26:])>>8) + 1
	}
	return 0, 0
}

// jpegSize goes from segment to segment until one begins a frame.
func jpegSize(data []byte) (width, height int) {
	for i := 2; i+9 <= len(data) && data[i] == 0xff; {
		kind := data[i+1]
		if kind >= 0xc0 && kind <= 0xcf && kind != 0xc4 && kind != 0xc8 && kind != 0xcc {
			return int(binary.BigEndian.Uint16(data[i+7:])), int(binary.BigEndian.Uint16(data[i+5:]))
		}
		i += 2 + int(binary.BigEndian.Uint16(data[i+2:]))
	}
	return 0, 0
}

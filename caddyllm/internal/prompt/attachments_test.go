package prompt

import (
	"fmt"
	"strings"
	"testing"
)

// vLLM lets a client name a picture, and send only the name when it has shown
// the picture before.
func TestAPictureSeenBeforeIsKnownByItsName(t *testing.T) {
	chat := func(part string) string {
		return `{"messages":[{"role":"user","content":[` + part + `,{"type":"text","text":"what is it?"}]}]}`
	}
	for _, kind := range []string{"image_url", "audio_url", "video_url"} {
		shown := chat(fmt.Sprintf(`{"type":%q,%q:{"url":"http://x/1"},"uuid":"u1"}`, kind, kind))
		wantSame(t, Chat, shown, chat(fmt.Sprintf(`{"type":%q,%q:null,"uuid":"u1"}`, kind, kind)))
		wantSame(t, Chat, shown, chat(fmt.Sprintf(`{"uuid":"u\u0031","type":%q}`, kind)))
		wantDifferent(t, Chat, shown, chat(fmt.Sprintf(`{"type":%q,"uuid":"u2"}`, kind)))
	}
}

// A picture weighs what it is for the engine, not what its text is long,
// whichever API and client it came by.
func TestPicturesWeighTheSameWhereverTheyStand(t *testing.T) {
	data := strings.Repeat("ABCD", 250_000)
	for _, x := range []struct {
		kind Kind
		body string
	}{
		{Chat, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/webp;base64,%s"}}]}]}`},
		{Chat, `{"messages":[{"role":"user","content":"a","images":["%s"]}]}`},
		{Messages, `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"image","source":{"type":"base64","data":"%s"}}]}]}]}`},
		{Responses, `{"input":[{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":"data:image/webp;base64,%s"}]}]}`},
		{Responses, `{"input":[{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"data:image/webp;base64,%s"}}]}`},
		{Generate, `{"prompt":"a","images":["%s"]}`},
		{Embeddings, `{"inputs":[{"content":[{"type":"image_url","image_url":{"url":"data:image/webp;base64,%s"}}]}]}`},
		{Embeddings, `{"texts":["a"],"images":["data:image/webp;base64,%s"]}`},
		{Score, `{"text_1":"a","text_2":{"content":[{"type":"image_url","image_url":{"url":"data:image/webp;base64,%s"}}]}}`},
		{Score, `{"queries":"a","documents":[{"content":[{"type":"image_url","image_url":{"url":"data:image/webp;base64,%s"}}]}]}`},
		{Rerank, `{"query":"a","documents":[{"image":"%s"}]}`},
	} {
		p := scanned(t, x.kind, fmt.Sprintf(x.body, data))
		if p.Bytes > 100 || p.ExtraTokens != imageTokens {
			t.Errorf("%v, %.60s: %d bytes of prompt and %d tokens, want few and %d", x.kind, x.body, p.Bytes, p.ExtraTokens, imageTokens)
		}
	}
	tensor := scanned(t, Chat, fmt.Sprintf(`{"messages":[{"role":"user","content":[{"type":"prompt_embeds","prompt_embeds":"%s"}]}]}`, data))
	if tensor.Bytes > 100 || tensor.ExtraTokens != len(data)/embedBytes {
		t.Errorf("tensors of %d bytes: %d bytes of prompt and %d tokens", len(data), tensor.Bytes, tensor.ExtraTokens)
	}
}

// Stores sign the address of a picture anew for each turn of a chat.
func TestASignedAddressIsThatOfWhatItShows(t *testing.T) {
	chat := func(url string) string {
		return `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + url + `"}}]}]}`
	}
	for name, x := range map[string][2]string{
		"S3":         {"https://b.s3.amazonaws.com/p.png?X-Amz-Algorithm=AWS4&X-Amz-Date=20260101T000000Z&X-Amz-Expires=600&X-Amz-Signature=aa", "https:\\/\\/b.s3.amazonaws.com\\/p.png?X-Amz-Algorithm=AWS4&X-Amz-Date=20260102T000000Z&X-Amz-Expires=600&X-Amz-Signature=bb"},
		"CloudFront": {"https://d.cloudfront.net/p.png?Expires=1&Signature=aa&Key-Pair-Id=K", "https://d.cloudfront.net/p.png?Expires=2&Signature=bb&Key-Pair-Id=K"},
		"Azure":      {"https://a.blob.core.windows.net/c/p.png?sv=2026&se=1&sp=r&sig=aa", "https://a.blob.core.windows.net/c/p.png?sv=2026&se=2&sp=r&sig=bb"},
		"Alibaba":    {"https://b.oss-cn-hangzhou.aliyuncs.com/p.png?x-oss-process=image/crop,x_0&x-oss-date=1&x-oss-signature=aa", "https://b.oss-cn-hangzhou.aliyuncs.com/p.png?x-oss-process=image/crop,x_0&x-oss-date=2&x-oss-signature=bb"},
		"Tencent":    {"https://b.cos.ap-beijing.myqcloud.com/p.png?q-sign-time=1&q-ak=k&q-signature=aa", "https://b.cos.ap-beijing.myqcloud.com/p.png?q-sign-time=2&q-ak=k&q-signature=bb"},
		"Google":     {"https://storage.googleapis.com/b/p.png?v=7&X-Goog-Date=1&X-Goog-Signature=aa", "https://storage.googleapis.com/b/p.png?v=7&X-Goog-Date=2&X-Goog-Signature=bb"},
	} {
		p, q := scanned(t, Chat, chat(x[0])), scanned(t, Chat, chat(x[1]))
		if p.whole != q.whole {
			t.Errorf("%s: a picture signed twice has two keys", name)
		}
	}
	for _, x := range [][2]string{
		{"https://b.s3.amazonaws.com/p.png?X-Amz-Signature=aa", "https://b.s3.amazonaws.com/q.png?X-Amz-Signature=aa"},
		{"https://storage.googleapis.com/b/p.png?v=7&X-Goog-Signature=aa", "https://storage.googleapis.com/b/p.png?v=8&X-Goog-Signature=aa"},
		{"https://b/p.png?x-oss-process=image/crop,x_0&x-oss-signature=aa", "https://b/p.png?x-oss-process=image/crop,x_500&x-oss-signature=aa"},
		{"https://x/render?sp=12&sig=aa", "https://x/render?sp=13&sig=aa"},
		{"https://x/p?id=1", "https://x/p?id=2"},
		{"https://x/p?expires=1", "https://x/p?expires=2"},
	} {
		wantDifferent(t, Chat, chat(x[0]), chat(x[1]))
	}
}

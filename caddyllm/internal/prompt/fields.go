package prompt

// field is a key of the request's outermost object.
type field uint8

const (
	fNone field = iota
	fModel
	fCacheSalt
	fStream
	fStreamOptions
	fN
	fMaxTokens
	fMaxCompletionTokens
	fMaxOutputTokens
	fMaxNewTokens
	fMessages
	fTools
	fFunctions
	fSystem
	fInstructions
	fInput
	fPrompt
	fInputIDs
	fChatTemplate
	fTemplateOptions
	fReasoning
	fPrevious
	fQuery
	fDocuments
	nFields
)

// topField knows the names of all APIs: they don't contradict each other, and
// engines take each other's.
func topField(name []byte) field {
	switch string(name) {
	case "model":
		return fModel
	case "cache_salt":
		return fCacheSalt
	case "stream":
		return fStream
	case "stream_options":
		return fStreamOptions
	case "n":
		return fN
	case "max_tokens":
		return fMaxTokens
	case "max_completion_tokens":
		return fMaxCompletionTokens
	case "max_output_tokens":
		return fMaxOutputTokens
	case "max_new_tokens":
		return fMaxNewTokens
	}
	return promptField(name)
}

// promptField knows the names of what is rendered.
func promptField(name []byte) field {
	switch string(name) {
	case "messages":
		return fMessages
	case "tools":
		return fTools
	case "functions": // OpenAI's name before "tools"
		return fFunctions
	case "system":
		return fSystem
	case "instructions":
		return fInstructions
	case "input":
		return fInput
	case "prompt", "text", "inputs": // vLLM, SGLang, TGI
		return fPrompt
	case "input_ids", "token_ids": // SGLang, vLLM
		return fInputIDs
	case "chat_template":
		return fChatTemplate
	case "chat_template_kwargs":
		return fTemplateOptions
	case "reasoning_effort", "reasoning": // rendered near the front by gpt-oss
		return fReasoning
	case "previous_response_id":
		return fPrevious
	case "query", "queries", "text_1", "data_1":
		return fQuery
	case "documents", "items", "text_2", "data_2":
		return fDocuments
	}
	return fNone
}

// messageField is a key of a message, of an item of a response's input, or of
// a tool call.
type messageField uint8

const (
	mNone messageField = iota
	mRole
	mName
	mID
	mCallID
	mContent
	mReasoning
	mSummary
	mEncrypted
	mRefusal
	mToolCalls
	mFunction
	mArguments
	mOutput
	mTools
	nMessageFields
)

func messageFieldOf(name []byte) messageField {
	switch string(name) {
	case "role":
		return mRole
	case "name":
		return mName
	case "id":
		return mID
	case "tool_call_id", "call_id":
		return mCallID
	case "content":
		return mContent
	case "reasoning", "reasoning_content":
		return mReasoning
	case "summary":
		return mSummary
	case "encrypted_content":
		return mEncrypted
	case "refusal":
		return mRefusal
	case "tool_calls":
		return mToolCalls
	case "function_call", "function", "custom":
		return mFunction
	case "arguments", "input":
		return mArguments
	case "output":
		return mOutput
	case "tools": // of a developer message
		return mTools
	}
	return mNone
}

// partField is a key of one part of a message's content.
type partField uint8

const (
	pNone partField = iota
	pText
	pThinking
	pImage
	pAudio
	pVideo
	pFile
	pID
	pName
	pInput
	pContent
	pType
	nPartFields
)

func partFieldOf(name []byte) partField {
	switch string(name) {
	case "text", "refusal":
		return pText
	case "thinking":
		return pThinking
	case "image_url", "image", "image_embeds":
		return pImage
	case "input_audio", "audio_url", "audio":
		return pAudio
	case "video_url", "video":
		return pVideo
	case "file", "file_id", "file_data", "file_url", "source":
		return pFile
	case "id", "tool_use_id":
		return pID
	case "name":
		return pName
	case "input":
		return pInput
	case "content":
		return pContent
	case "type":
		return pType
	}
	return pNone
}

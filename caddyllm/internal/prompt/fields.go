package prompt

// field is a key of the request's outermost object.
type field uint8

const (
	fNone field = iota
	fModel
	fCacheSalt
	fExtraKey
	fAdapter
	fStream
	fN
	fMaxTokens
	fMaxCompletionTokens
	fMaxOutputTokens
	fMaxNewTokens
	fSampling
	fSession
	fRare
	fMessages
	fTools
	fFunctions
	fSystem
	fInstructions
	fInput
	fContent
	fPrefix
	fPrompt
	fInputIDs
	fChatTemplate
	fTemplateOptions
	fEffort
	fThink
	fReasoning
	fThinking
	fOutputConfig
	fSafety
	fCitations
	fStrictTools
	fToolPrompt
	fGuideline
	fSpecialTokens
	fTruncation
	fTruncationSide
	fMediaOptions
	fProcessorOptions
	fFeatures
	fPrevious
	fPreviousInput
	fContext
	fEmbeds
	fImages
	fAudios
	fVideos
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
	case "extra_key": // SGLang's second salt
		return fExtraKey
	case "lora_path", "lora_request", "lora", "adapter_id": // SGLang, TensorRT-LLM, llama.cpp, TGI; vLLM's are models
		return fAdapter
	case "stream":
		return fStream
	case "n":
		return fN
	case "max_tokens":
		return fMaxTokens
	case "max_completion_tokens":
		return fMaxCompletionTokens
	case "max_output_tokens":
		return fMaxOutputTokens
	case "max_new_tokens", "n_predict", "num_predict": // SGLang and TGI, llama.cpp, Ollama
		return fMaxNewTokens
	case "sampling_params", "parameters", "options": // SGLang and vLLM's generate, TGI, Ollama
		return fSampling
	case "session_id":
		return fSession
	case "background", "echo", "logprobs", "return_logprob", "logprob_start_len", "cache_prompt", "prompt_logprobs", "skip_reading_prefix_cache",
		"decoder_input_details": // all that rareFieldOf knows
		return fRare
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
	case "content": // llama.cpp's embeddings
		return fContent
	case "input_prefix": // llama.cpp's, of code to be filled in
		return fPrefix
	case "prompt", "text", "texts", "inputs", "text_input": // vLLM, SGLang, Cohere, TGI, Triton
		return fPrompt
	case "input_ids", "token_ids": // SGLang, vLLM
		return fInputIDs
	case "chat_template", "template": // the second is Ollama's
		return fChatTemplate
	case "chat_template_kwargs":
		return fTemplateOptions
	case "reasoning_effort": // rendered near the front by gpt-oss
		return fEffort
	case "think", "enable_thinking": // Ollama's, LMDeploy's
		return fThink
	case "reasoning":
		return fReasoning
	case "thinking": // Anthropic's and Cohere's
		return fThinking
	case "safety_mode": // Cohere's, as are the next two
		return fSafety
	case "citation_options":
		return fCitations
	case "strict_tools": // that all tools are strict
		return fStrictTools
	case "tool_prompt": // TGI's, as the next
		return fToolPrompt
	case "guideline":
		return fGuideline
	case "output_config": // Anthropic's
		return fOutputConfig
	case "add_special_tokens":
		return fSpecialTokens
	case "truncate_prompt_tokens":
		return fTruncation
	case "truncation_side":
		return fTruncationSide
	case "media_io_kwargs":
		return fMediaOptions
	case "mm_processor_kwargs":
		return fProcessorOptions
	case "features": // images of vLLM's generate, whose token ids are all alike
		return fFeatures
	case "prompt_embeds":
		return fEmbeds
	case "image_data", "images": // SGLang, Cohere and Ollama
		return fImages
	case "audio_data": // SGLang's, as the next
		return fAudios
	case "video_data":
		return fVideos
	case "previous_response_id":
		return fPrevious
	case "previous_input_messages": // vLLM's, in place of a response's id
		return fPreviousInput
	case "context": // Ollama's token ids of the turns before
		return fContext
	case "query", "queries", "text_1", "data_1":
		return fQuery
	case "documents", "items", "text_2", "data_2", "input_extra": // the last is llama.cpp's
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
	mNamespace
	mID
	mCallID
	mCitations
	mContent
	mImages
	mReasoning
	mSummary
	mEncrypted
	mRefusal
	mToolCalls
	mFunction
	mArguments
	mOutput
	mTools
	mType
	nMessageFields
)

func messageFieldOf(name []byte) messageField {
	switch string(name) {
	case "role":
		return mRole
	case "name":
		return mName
	case "namespace", "server_label": // where a function's name is from; the second is an MCP server's
		return mNamespace
	case "id":
		return mID
	case "tool_call_id", "call_id", "tool_name": // the last is Ollama's
		return mCallID
	case "content":
		return mContent
	case "images": // Ollama's
		return mImages
	case "reasoning", "reasoning_content", "thinking", "tool_plan": // the last is Cohere's
		return mReasoning
	case "summary":
		return mSummary
	case "encrypted_content":
		return mEncrypted
	case "refusal":
		return mRefusal
	case "citations": // Cohere's
		return mCitations
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
	case "type":
		return mType
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
	pUUID
	pEmbeds
	pCache
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
	case "uuid": // vLLM's name for a picture that it may have seen before
		return pUUID
	case "prompt_embeds":
		return pEmbeds
	case "cache_control": // Anthropic's; it goes from part to part with the turns
		return pCache
	case "type":
		return pType
	}
	return pNone
}

// toolField is a key of a tool's definition, or of the function in it, in the
// order in which they are fed.
type toolField uint8

const (
	tNone toolField = iota
	tType
	tName
	tDescription
	tParameters
	tStrict
	tDefer
	tFunction
	tTools
	tPassing
	nToolFields
)

func toolFieldOf(name []byte) toolField {
	switch string(name) {
	case "type":
		return tType
	case "name":
		return tName
	case "description":
		return tDescription
	case "parameters", "input_schema":
		return tParameters
	case "strict":
		return tStrict
	case "defer_loading":
		return tDefer
	case "function":
		return tFunction
	case "tools": // of a namespace
		return tTools
	case "headers", "authorization", // for an MCP server, and new each hour
		"container", "vector_store_ids", "user_location", // of a session or a user; vLLM and SGLang know such tools by type
		"cache_control": // Anthropic's
		return tPassing
	}
	return tNone
}

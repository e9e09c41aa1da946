/** Models for a host: one method to be asked by, and those that come with it. */
export { type AiModelOptions, aiModel } from './ai.ts'
export type {
  Model,
  ModelFinish,
  ModelMessage,
  ModelPart,
  ModelPrice,
  ModelRequest,
  ModelTool,
  ModelToolResult,
  ModelToolUse,
  ModelTraits,
  ModelUsage,
} from './model.ts'
export { type OfflineOptions, offline } from './offline.ts'
export { type AnthropicOptions, anthropic, modelFromEnvironment, type OpenAiOptions, openai } from './providers.ts'
export { type ScriptedAnswer, type ScriptedModel, type ScriptedOptions, type ScriptStep, scripted } from './scripted.ts'
export { estimateTokens } from './tokens.ts'

/** `vivarium/host`: many servers, one agent, and a reason for every decision. Only public exports. */
import '../core/required-node.ts'

export type { AuditVerdict } from '../core/audit/audit.ts'
export { type Why, whyText } from '../core/suggestion.ts'
export type { LiveBlock, LiveConnection, SetUse } from '../features/live/client-api.ts'
export type { PushAnswer, PushEvent } from '../features/live/push-events/messages.ts'
export type { Scope, ScopeLists } from '../features/live/scopes/messages.ts'
export type { Covers, GrantFor, Kept, StoredApproval, WiderAnswer } from '../policy/approvals/approvals.ts'
export type { ApprovalAnswer, ApprovalQuestion, OnApproval } from '../policy/approvals/question.ts'
export type { AuditQuestion as Question, Explanation, Note, Noted, NoteOutcome, Queried } from '../policy/audit/host-audit.ts'
export type { BudgetLimit, BudgetStatus, Spender, Spending, SpentOptions, SpentRow } from '../policy/budgets/budgets.ts'
export type { PolicyDiff } from '../policy/compile.ts'
export type { HeldTool } from '../policy/pins/pins.ts'
export type { Explained, Policy } from '../policy/policy.ts'
export type { Hours } from '../policy/rules/read.ts'
export type {
  Asked,
  BegunBy,
  BegunBy as TurnSource,
  Effect,
  Kind,
  PolicyRules,
  Rule,
  RuleRate as Rate,
  ServerRules,
  When,
} from '../policy/rules/rule.ts'
export type { Verdict } from '../policy/rules/verdict.ts'
export type { Extractors } from '../policy/scopes/elevate.ts'
export type { LiveSection } from './config/entry.ts'
export { type ConfigFault, type ConfiguredServer, faultText, type HostConfig, readConfig } from './config/read.ts'
export { createHost } from './create.ts'
export type { HostOptions, HostSettings } from './host.ts'
export { Host } from './host.ts'
export type { Inbox } from './inbox/inbox.ts'
export type { InboxRecord, ListOptions } from './inbox/options.ts'
export type { Attempt, InboxState } from './inbox/records.ts'
export type { OnServerQuestion, ServerQuestion } from './loop/answers/answers.ts'
export type { OnSampleReview, SampleReview, SampleReviewed } from './loop/answers/sampling.ts'
export { HostConversation as Conversation } from './loop/conversation.ts'
export type { CallOutcome, ConversationFacts, PlannedCall } from './loop/conversation-log.ts'
export type { HookReport, HookRule, ServerHooks } from './loop/hooks.ts'
export type { LoopLimits } from './loop/limits.ts'
export type { OnTurn } from './loop/ports.ts'
export type { PromptSection, PromptSnapshot } from './loop/prompt.ts'
export type { TurnPart } from './loop/turn.ts'
export { Turn, type TurnAnswer as Answer, type TurnCall, type TurnCost, type TurnStatus } from './loop/turn.ts'
export type { UndoReport, UndoStep } from './loop/undo-steps.ts'
export type { Attachment, OfferedPrompt, UserInputOptions as SendOptions } from './loop/user-input.ts'
export { type AiModelOptions, aiModel } from './models/ai.ts'
export {
  estimateTokens,
  type Model,
  type ModelFinish,
  type ModelMessage,
  type ModelPart,
  type ModelPrice,
  type ModelRequest,
  type ModelTool,
  type ModelToolResult,
  type ModelToolUse as ToolUse,
  type ModelTraits,
  type ModelUsage,
} from './models/model.ts'
export { type OfflineOptions, offline } from './models/offline.ts'
export { type AnthropicOptions, anthropic, modelFromEnvironment, type OpenAiOptions, openai } from './models/providers.ts'
export { type ScriptedAnswer, type ScriptedModel, type ScriptedOptions, type ScriptStep, scripted } from './models/scripted.ts'
export {
  type Difference,
  openRecorder,
  type Recorder,
  type Replayed,
  type ReplayGiven,
  type ReplayHost,
  type ReplayOptions,
  replay,
} from './recorder/record.ts'
export type { Opening, ServerOption, ServerSettings } from './servers/entry.ts'
export type { HostServer, HostTool, ServerStatus } from './servers/server.ts'
export type { RolledBack, Sent, StateBook, TreeNode } from './state/book.ts'
export type { Recorded } from './state/checkpoint-writer.ts'

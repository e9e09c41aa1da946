/** What a handler gets beside its arguments: the engine's context and what each feature adds to it. */
import type { CallContext } from '../engine/context.ts'
import type { LiveMembers } from '../features/live/context.ts'
import type { ElicitationContext } from '../features/mcp/elicitation/server.ts'
import type { LoggingContext } from '../features/mcp/logging/server.ts'
import type { RootsContext } from '../features/mcp/roots/server.ts'
import type { SamplingContext } from '../features/mcp/sampling/server.ts'
import type { TasksContext } from '../features/mcp/tasks/server.ts'
import type { ConfirmationContext } from '../features/reliability/confirmation/server.ts'
import type { CostContext } from '../features/reliability/cost/server.ts'
import type { ReferencesContext } from '../features/reliability/data-references/context.ts'
import type { IdempotencyContext } from '../features/reliability/idempotency/server.ts'
import type { IntentContext } from '../features/reliability/intent/server.ts'
import type { StateContext } from '../features/reliability/session-state/server.ts'
import type { ProgressContext } from '../features/reliability/streaming/server.ts'

/** The author's view of a call. */
export interface Context
  extends CallContext,
    ElicitationContext,
    LoggingContext,
    RootsContext,
    SamplingContext,
    TasksContext,
    ConfirmationContext,
    CostContext,
    ReferencesContext,
    IdempotencyContext,
    IntentContext,
    StateContext,
    ProgressContext {}

/** The author's view of a call of a tool that belongs to a feature set. */
export interface LiveContext extends Context, LiveMembers {}

/** Limits of a conversation and of the whole engine, beside those of a frame. */
import { clientFrameLimits, type FrameLimits, frameLimits } from '../jsonrpc/limits.ts'

/** The limits of an engine; each has a default. */
export interface Limits extends FrameLimits {
  /** Calls in flight per conversation, and per principal where calls belong to none; more are refused, running ones never dropped. */
  readonly callsPerConversation: number
  /** Calls in flight in all. */
  readonly calls: number
  /** How long we wait for an answer, or a sign of progress. */
  readonly callTimeoutMs: number
  /** How long we wait in all, whatever progress says. */
  readonly callTotalMs: number
  /** Open sessions in all. */
  readonly sessions: number
  /** Open sessions per principal. */
  readonly sessionsPerPrincipal: number
  /** How long a session may stay unused. */
  readonly sessionIdleMs: number
  /** Open listen requests in all. */
  readonly listeners: number
  /** Open listen requests per principal, else per connection. */
  readonly listenersPerCaller: number
  /** Tasks at work in all. */
  readonly runningTasks: number
  /** Tasks at work per principal, else per session or connection. */
  readonly runningTasksPerCaller: number
  /** Resources watched per session, or named in one listen request. */
  readonly subscriptions: number
}

const shared = {
  callsPerConversation: 64,
  calls: 2_000,
  callTimeoutMs: 60_000,
  callTotalMs: 600_000,
  sessions: 10_000,
  sessionsPerPrincipal: 100,
  sessionIdleMs: 600_000,
  listeners: 5_000,
  listenersPerCaller: 32,
  runningTasks: 500,
  runningTasksPerCaller: 64,
  subscriptions: 1_000,
}

/** The defaults of a server. */
export const serverLimits: Limits = { ...frameLimits, ...shared }
export const clientLimits: Limits = { ...clientFrameLimits, ...shared }

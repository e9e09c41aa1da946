/** Limits of a conversation and of the whole engine, beside those of a frame. */
import { clientFrameLimits, type FrameLimits, frameLimits } from '../jsonrpc/limits.ts'

/** Limits on messages, requests and sessions. A request above a limit is refused with an error that names the limit. */
export interface Limits extends FrameLimits {
  /** Running calls per session, or per principal without sessions. Default 64. */
  readonly callsPerConversation: number
  /** Running calls in total. Default 2,000. */
  readonly calls: number
  /** How long to wait for an answer or a sign of progress, in milliseconds. Default 60,000. */
  readonly callTimeoutMs: number
  /** How long to wait for an answer in total, in milliseconds, regardless of progress. Default 600,000. */
  readonly callTotalMs: number
  /** Open sessions in total. Default 10,000. */
  readonly sessions: number
  /** Open sessions per principal. Default 100. */
  readonly sessionsPerPrincipal: number
  /** How long a session may stay unused, in milliseconds. Default 600,000. */
  readonly sessionIdleMs: number
  /** Open listen requests in total. Default 5,000. */
  readonly listeners: number
  /** Open listen requests per principal, or per connection of callers without one. Default 32. */
  readonly listenersPerCaller: number
  /** Running tasks in total. Default 500. */
  readonly runningTasks: number
  /** Running tasks per principal, or per session or connection of callers without one. Default 64. */
  readonly runningTasksPerCaller: number
  /** Resources that one session watches, or that one listen request names. Default 1,000. */
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

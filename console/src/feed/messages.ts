/** What the worker that holds the stream and the pages say to each other. */
import type { ConsoleEvent } from '#contract'

/** `live`: connected. `waiting`: trying again. `ended`: the session is over, or the process refuses the stream. */
export type FeedStatus = 'connecting' | 'live' | 'waiting' | 'ended'

export type FeedMessage =
  | { readonly kind: 'status'; readonly status: FeedStatus; readonly lastAt: number | undefined }
  | { readonly kind: 'event'; readonly event: ConsoleEvent }

/** Every event that the stream can carry. */
export const eventNames = [
  'hello',
  'lost',
  'server',
  'fault',
  'approval',
  'answered',
  'audit',
  'log',
  'traffic',
  'spent',
  'job',
  'frames',
  'connection',
  'call',
  'tape',
  'conformance',
  'result',
  ...(['turn', 'part', 'span', 'inbox', 'checkpoint', 'head'] as const),
] as const satisfies readonly ConsoleEvent['event'][]

/** A recording: one line of JSON for each thing that happened to a host, in order, with the time at which it did. */
import { readJsonLines } from '../../core/json-lines.ts'
import type { Why } from '../../core/why.ts'
import type { ModelInfo } from '../../features/live/model-info/messages.ts'
import type { Carrier } from '../../jsonrpc/connection.ts'
import type { Attachment } from '../loop/user-input.ts'
import type { ModelPart, ModelRequest } from '../models/model.ts'

/** What a turn came to, without what differs from run to run. */
export interface TurnLine {
  readonly conversation: string
  readonly seq: number
  /** Null where an event began it. */
  readonly text: string | null
  readonly status: string
  readonly answer?: string
  readonly why?: Why
  readonly calls: readonly {
    readonly server?: string
    readonly tool: string
    readonly arguments: unknown
    readonly status?: string
    readonly content?: unknown
  }[]
  readonly hooks: readonly { readonly server: string; readonly hook: string; readonly outcome: string }[]
  readonly prompt: readonly { readonly from: string; readonly namespace?: string; readonly tokens: number }[]
}

export type RecordedLine = { readonly at: number } & (
  | { readonly kind: 'begin'; readonly version: 1 }
  /** A connection; a server that is connected anew has several. */
  | { readonly kind: 'open'; readonly server: string; readonly connection: number; readonly carrier: Carrier }
  | { readonly kind: 'out' | 'in'; readonly server: string; readonly connection: number; readonly frame: unknown }
  | { readonly kind: 'closed'; readonly server: string; readonly connection: number }
  | {
      readonly kind: 'model'
      readonly info: ModelInfo
      readonly request: ModelRequest
      readonly parts: readonly ModelPart[]
      readonly error?: { readonly code: string; readonly message: string }
    }
  | { readonly kind: 'id'; readonly id: string }
  | { readonly kind: 'said'; readonly conversation: string; readonly text: string; readonly attach: readonly Attachment[] }
  | { readonly kind: 'turn'; readonly turn: TurnLine }
)

/** A recording whose writer was killed amid a line is good up to there. */
export function readLines(text: string): readonly RecordedLine[] {
  const read = readJsonLines(text, 'recording').values as readonly unknown[] as readonly RecordedLine[]
  const [first] = read
  if (first?.kind !== 'begin' || first.version !== 1) throw new TypeError('This is no recording of a host')
  return read
}

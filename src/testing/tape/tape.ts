/** A tape that is read: its conversations, each a list of frames in the order in which they passed. */
import { readFile, stat } from 'node:fs/promises'
import type { Clock } from '../../core/clock.ts'
import type { Carrier, Connection } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { memoryPair } from '../../transports/memory.ts'
import type { FaultsOption } from './faults.ts'
import { type From, frameText, frameValue, readTape, type TapeHeader, type TapeLine } from './line.ts'
import { playTape } from './play-tape.ts'

export interface TapedFrame {
  readonly from: From
  /** Milliseconds since the tape began. */
  readonly at: number
  readonly text: string
  /** Undefined for what is no JSON. */
  readonly value: unknown
  /** The line of the file. */
  readonly line: number
  /** Headers and status, where HTTP carried it. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
}

export interface TapedConversation {
  readonly carrier: Carrier
  readonly frames: readonly TapedFrame[]
}

export interface PlayingOptions {
  /** How fast: 1 is the pace of the tape, 2 twice that. Default: without any waiting. */
  readonly speed?: number
  /** What goes wrong: `delay=200ms@tools/call:0.5`, `drop`, `cut:0.01`, … Default: nothing. */
  readonly faults?: FaultsOption
  /** The same seed brings the same faults. Default 1. */
  readonly seed?: number
  readonly clock?: Clock
}

export interface Tape {
  readonly header: TapeHeader
  readonly conversations: readonly TapedConversation[]
  /** Whether its writer was killed amid a line, or the file was full: something is missing at its end. */
  readonly cut: boolean
  /** A connection to a server that says what it said on the tape: for `connect`. Each call begins the next conversation. */
  target(options?: PlayingOptions): Connection
}

/** More than any recording of ours holds. */
const mostBytes = 300 * 1024 * 1024

/**
 * Reads a tape.
 * @example
 * const tape = await openTape('session.tape')
 * await using mcp = await connect(tape.target())
 */
export async function openTape(file: string): Promise<Tape> {
  const { size } = await stat(file)
  if (size > mostBytes)
    throw new TypeError(`${clip(file)} has ${size} bytes, and at most ${mostBytes} are read. Record less, with maxBytes`)
  return tapeOf(await readFile(file, 'utf8'))
}

/** The same from its text. */
export function tapeOf(text: string): Tape {
  const { header, lines, cut } = readTape(text)
  const conversations = conversationsOf(lines)
  const opened = new Map<PlayingOptions | undefined, ReturnType<typeof playTape>>()
  return {
    header,
    conversations,
    cut: cut || lines.some(({ kind }) => kind === 'full'),
    target: options => {
      const play = opened.get(options) ?? playTape(conversations, options)
      opened.set(options, play)
      const [near, far] = memoryPair()
      play(far)
      return near
    },
  }
}

function conversationsOf(lines: readonly TapeLine[]): readonly TapedConversation[] {
  const found = new Map<number, { carrier: Carrier; frames: TapedFrame[] }>()
  for (const [at, line] of lines.entries()) {
    if (line.kind === 'open') found.set(line.conversation, { carrier: line.carrier, frames: [] })
    if (line.kind !== 'frame') continue
    const { status, headers } = line.http ?? {}
    found.get(line.conversation)?.frames.push({
      from: line.from,
      at: line.at,
      text: frameText(line),
      value: frameValue(line),
      line: at + 2,
      ...(status !== undefined && { status }),
      ...(headers !== undefined && { headers }),
    })
  }
  return [...found.values()].filter(({ frames }) => frames.length > 0)
}

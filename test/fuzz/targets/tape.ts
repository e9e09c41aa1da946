/** Tapes that others wrote, or that were cut or bent on the way: read whole, or refused in one sentence; and what is read can be played. */
import { lineText, type RecordingLine, recordedFrame } from '../../../src/recording/format.ts'
import { tapeOf } from '../../../src/recording/mock-server.ts'
import { ConnectionPlayback } from '../../../src/recording/script.ts'
import { bentText, value } from '../json.ts'
import { mutated } from '../mutate.ts'
import { demand, target } from '../target.ts'

const header = { recording: 1, began: '2026-01-01T00:00:00.000Z', by: 'fuzz' } as const
const said: readonly (readonly ['client' | 'server', unknown])[] = [
  ['client', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'a', _meta: { progressToken: 7 } } }],
  ['server', { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 7, progress: 1 } }],
  ['server', { jsonrpc: '2.0', id: 9, method: 'elicitation/create', params: { message: 'x' } }],
  ['client', { jsonrpc: '2.0', id: 9, result: { action: 'accept' } }],
  ['server', { jsonrpc: '2.0', id: 1, result: { content: [] } }],
]

interface Input {
  readonly text: string
  readonly asked: readonly unknown[]
}

export const tapes = target<Input>({
  name: 'tapes',
  make: source => {
    const lines = said.map(([from, frame], at): RecordingLine => {
      const text = JSON.stringify(source.pick([frame, mutated(source, frame), value(source)]))
      return { kind: 'frame', at, connection: 1, from, ...recordedFrame(source.pick([text, bentText(source, text)])) }
    })
    const whole =
      lineText(header) + [{ kind: 'open', at: 0, connection: 1, carrier: 'stdio' } as const, ...lines].map(lineText).join('')
    return {
      text: source.pick([whole, bentText(source, whole)]),
      asked: said.map(([, frame]) => source.pick([frame, value(source)])),
    }
  },
  check: ({ text, asked }) => {
    const tape = readOrRefused(text)
    for (const { frames } of tape?.conversations ?? []) {
      const script = new ConnectionPlayback(frames, out => void JSON.parse(out))
      for (const frame of asked) play(script, frame)
    }
  },
})

function readOrRefused(text: string): ReturnType<typeof tapeOf> | undefined {
  try {
    return tapeOf(text)
  } catch (error) {
    demand(error instanceof TypeError && error.message.length < 200, () => `refused by ${error}`)
    return undefined
  }
}

function play(script: ConnectionPlayback, frame: unknown): void {
  const { id, method, params } = (frame ?? {}) as { id?: number; method?: string; params?: unknown }
  if (typeof method === 'string') script.play({ method, params, ...(id !== undefined && { id }) })
  else if (typeof frame === 'object' && frame !== null) script.answered(frame as Record<string, unknown>)
}

/** Event streams: what is read does not depend on the cuts and is what the standard's own steps give; what we write is read back as it was. */
import { ConnectionError } from '../../../src/jsonrpc/connection.ts'
import { endpointText, eventText, keepAliveText, primingText, retryText } from '../../../src/transports/http/event.ts'
import { SseParser } from '../../../src/transports/sse/parse.ts'
import { cuts, stream } from '../bytes.ts'
import type { Source } from '../source.ts'
import { demandSame, target } from '../target.ts'

const own = [
  '\n',
  '\r',
  '\r\n',
  '\n\n',
  'data:',
  'data: ',
  'data',
  'event: ',
  'event: message',
  'id: ',
  'id',
  'retry: 7',
  ':',
  'id: 1',
].map(text => Buffer.from(text))

interface Input {
  readonly bytes: Buffer
  readonly chunks: readonly Buffer[]
  readonly limits: { readonly eventBytes: number; readonly lines?: number }
}

/** Everything a reader can observe, up to the failure if there is one. */
function read(chunks: readonly Buffer[], limits: Input['limits']): unknown[] {
  const seen: unknown[] = []
  const parser = new SseParser(limits, (data, type) => seen.push([data, type, parser.lastId]))
  try {
    for (const chunk of chunks) parser.push(chunk)
    seen.push([parser.lastId, parser.retryMs])
  } catch (error) {
    if (!(error instanceof ConnectionError)) throw error
    seen.push(error.kind)
  }
  return seen
}

export const sse = target<Input>({
  name: 'sse',
  make: source => {
    const limits = source.pick([{ eventBytes: 1_000_000 }, { eventBytes: 30 }, { eventBytes: 1_000_000, lines: 3 }])
    const bytes = stream(source, own)
    return { bytes, limits, chunks: cuts(source, bytes) }
  },
  check: ({ bytes, chunks, limits }) => {
    const whole = read([bytes], limits)
    demandSame(read(chunks, limits), whole, 'the same bytes cut otherwise')
    if (whole.at(-1) !== 'too-large' && whole.at(-1) !== 'protocol') demandSame(whole, plainly(bytes), 'the standard')
  },
})

/** WHATWG HTML, 9.2.6, with all of the stream at hand. */
function plainly(bytes: Buffer): unknown[] {
  const seen: unknown[] = []
  const text = new TextDecoder().decode(bytes)
  const lines = text.split(/\r\n|\r|\n/)
  // What follows the last line break is no line.
  lines.pop()
  let data: string[] = []
  let type = ''
  let id: string | undefined
  let last: string | undefined
  let retry: number | undefined
  for (const line of lines) {
    const [, name = '', value = ''] = /^([^:]*)(?:: ?(.*))?$/su.exec(line) ?? []
    if (line === '') {
      last = id
      if (data.length > 0) seen.push([data.join('\n'), type === 'message' ? '' : type, last])
      data = []
      type = ''
    } else if (name === 'data') data.push(value)
    else if (name === 'event') type = value
    else if (name === 'retry' && /^[0-9]+$/.test(value)) retry = Number(value)
    else if (name === 'id' && !value.includes('\0')) id = /^\P{Cc}{1,1024}$/u.test(value) ? value : undefined
  }
  seen.push([last, retry])
  return seen
}

interface Written {
  readonly text: string
  readonly frames: readonly string[]
  readonly chunks: readonly Buffer[]
}

export const events = target<Written>({
  name: 'events',
  make: source => {
    const frames: string[] = []
    const parts = source.list(6, () => part(source, frames))
    const text = parts.join('')
    return { text, frames, chunks: cuts(source, Buffer.from(text)) }
  },
  check: ({ frames, chunks }) => {
    const heard: unknown[] = []
    const parser = new SseParser({ eventBytes: 1_000_000 }, (data, type) => {
      if (data !== '' && type === '') heard.push(JSON.parse(data))
    })
    for (const chunk of chunks) parser.push(chunk)
    demandSame(
      heard,
      frames.map(frame => JSON.parse(frame)),
      'what was written',
    )
  },
})

const strings = ['x', '\n', '\r\n', 'data: ', '\n\n', '\u2028', '😀', '\u0000', '\\', '"', ':', 'event: endpoint']

function part(source: Source, frames: string[]): string {
  const kind = source.int(8)
  if (kind === 4) return keepAliveText
  if (kind === 5) return primingText(`s${source.int(100)}`)
  if (kind === 6) return retryText(source.int(100_000))
  if (kind === 7) return endpointText('/messages?session=1')
  const value = { text: source.list(4, () => source.pick(strings)).join('') }
  const frame = kind === 3 ? JSON.stringify(value, null, source.pick([2, '\t', ''])) : JSON.stringify(value)
  frames.push(frame)
  return eventText(frame, kind === 2 ? `e${source.int(9)}` : undefined)
}

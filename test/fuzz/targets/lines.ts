/** The framer of stdio: however the bytes are cut, and wherever it is paused, the frames and faults are those of the plainest reading. */
import { Lines } from '../../../src/transports/framing/lines.ts'
import { cuts, stream } from '../bytes.ts'
import { demandSame, target } from '../target.ts'

const own = ['\n', '\r\n', '\n\n', '\r', ' \t\n', '\r\r\n'].map(text => Buffer.from(text))
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

interface Input {
  readonly bytes: Buffer
  readonly chunks: readonly Buffer[]
  readonly limit: number
  /** Paused after every so many events; 0: never. */
  readonly pauses: number
}

export const lines = target<Input>({
  name: 'lines',
  make: source => {
    const limit = source.pick([100_000, 40, 10, 1])
    const pauses = source.pick([0, 0, 0, 1, 3])
    const bytes = stream(source, own)
    return { bytes, limit, pauses, chunks: cuts(source, bytes) }
  },
  check: input => demandSame(read(input), plainly(input), 'frames and faults'),
})

function read({ chunks, limit, pauses }: Input): string[] {
  const events: string[] = []
  const note = (event: string): void => {
    events.push(event)
    if (pauses > 0 && events.length % pauses === 0) reader.pause()
  }
  const reader = new Lines({ frame: text => note(`"${text}"`), fault: fault => note(fault.kind) }, limit)
  for (const chunk of chunks) reader.push(chunk)
  reader.end()
  while (reader.paused) reader.resume()
  return events
}

function plainly({ bytes, limit }: Input): string[] {
  const events: string[] = []
  for (let start = 0, end = 0; start < bytes.length; start = end + 1) {
    end = bytes.indexOf(0x0a, start)
    if (end === -1) end = bytes.length
    const event = end - start > limit ? 'too-large' : decoded(bytes.subarray(start, end))
    if (event !== undefined) events.push(event)
  }
  return events
}

function decoded(line: Buffer): string | undefined {
  try {
    const text = strict.decode(line).replace(/\r$/, '')
    return /^[ \t\r]*$/.test(text) ? undefined : `"${text}"`
  } catch {
    return 'not-utf8'
  }
}

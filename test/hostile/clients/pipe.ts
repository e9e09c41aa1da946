/** S: a client on stdio that means harm. Each attack has a process of its own; after it, the next good line must be answered. */
import type { Verdict } from '../case.ts'
import { badly, judge, textOf, well } from './attack.ts'
import type { PipeLine } from './pipe-line.ts'
import { growth, mebibyte, mebibytes } from './watch.ts'
import { call, type Frame, isModern, request } from './wire.ts'

export interface PipeAttack {
  readonly key: string
  readonly name: string
  readonly memory?: number
  readonly patient?: true
  readonly heavy?: true
  /** The process is expected to end: no good line follows. */
  readonly last?: true
  readonly unrated?: true
  run(pipe: PipeLine): Promise<Verdict>
}

const errorsOf = (frames: readonly Frame[]): number[] =>
  frames.flatMap(frame => (frame['error'] === undefined ? [] : [(frame['error'] as { code: number }).code]))

/** Writes, then asks something good; all that came before its answer is what the attack got. */
export async function attackWith(pipe: PipeLine, data: string | Buffer, ms = 5_000): Promise<Frame[] | undefined> {
  const before = pipe.frames().length
  await pipe.write(data)
  const marker = `after-${before}-${pipe.lines.length}`
  await pipe.say(call(pipe.era, 'echo', { text: marker }, marker))
  const came = await pipe.until(() => pipe.under(marker).length > 0, ms)
  if (!came || textOf(pipe.under(marker)[0]?.['result'] as Frame) !== marker) return undefined
  return pipe
    .frames()
    .slice(before)
    .filter(frame => frame['id'] !== marker)
}

/** Each bad line gets this error, and the next good line is served. */
async function refusedLines(pipe: PipeLine, data: string | Buffer, code: number, count: number): Promise<Verdict> {
  const frames = await attackWith(pipe, data)
  if (frames === undefined) return badly('the next good line got no answer')
  const codes = errorsOf(frames)
  const right = codes.length === count && codes.every(each => each === code)
  return judge(
    right && JSON.stringify(frames).length < count * 2_048,
    `${codes.length} times ${[...new Set(codes)].join(', ').replaceAll('-', '−')}`,
  )
}

async function runsOf(pipe: PipeLine): Promise<number> {
  return (await pipe.target.facts()).runs
}

const line = (pipe: PipeLine, bytes: readonly number[]): Buffer => {
  const [before = '', after = ''] = JSON.stringify(call(pipe.era, 'echo', { text: '@@' })).split('@@')
  return Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(`${after}\n`)])
}

async function pour(pipe: PipeLine, piece: Buffer, pieces: number): Promise<void> {
  for (let at = 0; at < pieces; at++) await pipe.write(piece)
}

const framing: readonly PipeAttack[] = [
  {
    key: 'S01',
    name: 'a line of 64 MiB without end: refused once, bounded, and the next line is served',
    memory: 48,
    run: async pipe => {
      const before = pipe.frames().length
      await pour(pipe, Buffer.alloc(mebibyte, 0x61), 64)
      if ((await attackWith(pipe, '\n', 10_000)) === undefined) return badly('the next good line got no answer')
      const codes = errorsOf(pipe.frames().slice(before))
      return judge(codes.length === 1 && codes[0] === -32700, codes.join(', ').replaceAll('-', '−'))
    },
  },
  {
    key: 'S02',
    name: 'lines that are no JSON: −32700 each',
    run: pipe => refusedLines(pipe, 'hello\n{\n[1,\n{"a":1}}\n', -32700, 4),
  },
  {
    key: 'S03',
    name: 'an argument that is not UTF-8: −32700, and no tool runs',
    run: async pipe => {
      const before = await runsOf(pipe)
      const bad = [[0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80]].map(bytes => line(pipe, bytes))
      const verdict = await refusedLines(pipe, Buffer.concat(bad), -32700, 3)
      // The good line after it ran once.
      return (await runsOf(pipe)) > before + 1 ? badly(`${verdict.detail}, and the tool ran`) : verdict
    },
  },
  {
    key: 'S04',
    name: 'a line one byte longer than allowed: refused; one just as long as allowed: served',
    memory: 96,
    run: async pipe => {
      const shell = JSON.stringify(call(pipe.era, 'echo', { text: '' }, 'full')).length
      const text = 'x'.repeat(4 * mebibyte - shell)
      const long = await refusedLines(
        pipe,
        `${JSON.stringify(call(pipe.era, 'echo', { text: `${text}x` }, 'long'))}\n`,
        -32700,
        1,
      )
      if (!long.well) return long
      await pipe.say(call(pipe.era, 'echo', { text }, 'full'))
      return judge(await pipe.until(() => pipe.under('full').length > 0), long.detail)
    },
  },
  {
    key: 'S05',
    name: 'a line in single bytes: served like any other',
    run: async pipe => {
      for (const byte of Buffer.from(`${JSON.stringify(call(pipe.era, 'echo', { text: 'é漢😀' }, 'bytes'))}\n`))
        await pipe.write(Buffer.of(byte))
      await pipe.until(() => pipe.under('bytes').length > 0)
      return judge(textOf(pipe.under('bytes')[0]?.['result'] as Frame) === 'é漢😀', 'served')
    },
  },
  {
    key: 'S06',
    name: '32 MiB of empty lines: passed over, bounded',
    memory: 48,
    run: async pipe => {
      await pour(pipe, Buffer.alloc(mebibyte, 0x0a), 32)
      const frames = await attackWith(pipe, '\n', 10_000)
      return judge(frames?.length === 0, frames === undefined ? 'the next good line got no answer' : `${frames.length} answers`)
    },
  },
  {
    key: 'S07',
    name: 'CRLF, spaces and tabs around lines: no part of the message',
    run: async pipe => {
      const good = JSON.stringify(call(pipe.era, 'echo', { text: 'a' }, 'crlf'))
      const frames = await attackWith(pipe, `\r\n  \t\r\n  ${good}  \r\n\r\n`)
      return judge(frames?.length === 1 && pipe.under('crlf').length === 1, `${frames?.length} answers`)
    },
  },
  {
    key: 'S15',
    name: 'NULs, escape sequences and other control characters: −32700, and none of them comes back',
    run: async pipe => {
      const verdict = await refusedLines(pipe, '\u0000\u0000\n\u001b[2J\u001b]0;evil\u0007\n{"a":"\u0001"}\n', -32700, 3)
      return /\u001b|\u0000/.test(pipe.lines.join('') + pipe.target.stderr()) ? badly('a control character came back') : verdict
    },
  },
]

const meaning: readonly PipeAttack[] = [
  {
    key: 'S08',
    name: 'requests of a bad shape that have an id: answered under it',
    run: async pipe => {
      const bad = [
        { id: 'a', method: 'tools/call' },
        { jsonrpc: '1.0', id: 'b', method: 'ping' },
        { jsonrpc: '2.0', id: 'c', method: 5 },
        { jsonrpc: '2.0', id: 'd' },
      ]
      const frames = await attackWith(pipe, `${bad.map(each => JSON.stringify(each)).join('\n')}\n`)
      const ids = frames?.map(frame => frame['id'])
      const under = ['a', 'b', 'c', 'd'].filter(id => ids?.includes(id)).length
      return judge(
        under === 4 && errorsOf(frames ?? []).every(code => code === -32600),
        `${under} of 4 answered, ${errorsOf(frames ?? [])[0]}`.replace('-', '−'),
      )
    },
  },
  {
    key: 'S09',
    name: 'batches, empty ones, batches in batches: −32600, and no tool runs',
    run: async pipe => {
      const before = await runsOf(pipe)
      const one = call(pipe.era, 'echo', { text: 'a' })
      const verdict = await refusedLines(pipe, `[]\n${JSON.stringify([one, one])}\n${JSON.stringify([[one]])}\n`, -32600, 3)
      return (await runsOf(pipe)) > before + 1 ? badly(`${verdict.detail}, and the tool ran`) : verdict
    },
  },
  {
    key: 'S10',
    name: 'one id twice in flight: both are answered',
    run: async pipe => {
      await pipe.say(call(pipe.era, 'wait', { ms: 200, text: 'first' }, 1))
      await pipe.say(call(pipe.era, 'wait', { ms: 50, text: 'second' }, 1))
      await pipe.until(() => pipe.under(1).length >= 2)
      const texts = pipe.under(1).map(frame => textOf(frame['result'] as Frame))
      return judge(texts.length === 2 && texts.includes('first') && texts.includes('second'), texts.join(' and '))
    },
  },
  {
    key: 'S11',
    name: 'arrays 100,000 deep and a million items: refused before anything recursive sees them',
    memory: 96,
    run: async pipe => {
      const wide = JSON.stringify(call(pipe.era, 'mirror', '@@')).replace('"@@"', `{"a":[${'0,'.repeat(1_000_000)}0]}`)
      const frames = await attackWith(pipe, `${'['.repeat(100_000)}\n${'{"a":'.repeat(50_000)}\n${wide}\n`)
      const codes = errorsOf(frames ?? [])
      return judge(codes.length === 3 && JSON.stringify(frames).length < 4_096, codes.join(', ').replaceAll('-', '−'))
    },
  },
  {
    key: 'S12',
    name: 'ten thousand notifications that nobody knows, and answers to nothing: silence',
    run: async pipe => {
      const unknown = `${JSON.stringify({ jsonrpc: '2.0', method: 'no/such' })}\n${JSON.stringify({ jsonrpc: '2.0', id: 5, result: {} })}\n`
      const frames = await attackWith(pipe, unknown.repeat(5_000), 10_000)
      return judge(frames?.length === 0, frames === undefined ? 'the next good line got no answer' : `${frames.length} answers`)
    },
  },
  {
    key: 'S14',
    name: 'a thousand calls at once: each answered or told that the server is busy, and a ping gets through',
    unrated: true,
    run: async pipe => {
      const calls = Array.from(
        { length: 1_000 },
        (_, at) => `${JSON.stringify(call(pipe.era, 'wait', { ms: 300, text: `${at}` }, `c${at}`))}\n`,
      )
      await pipe.write(calls.join(''))
      const alive = isModern(pipe.era)
        ? request(pipe.era, 'server/discover', {}, 'alive')
        : request(pipe.era, 'ping', {}, 'alive')
      await pipe.say(alive)
      const pinged = await pipe.until(() => pipe.under('alive').length > 0)
      const ours = () => pipe.frames().filter(frame => String(frame['id']).startsWith('c'))
      await pipe.until(() => ours().length >= 1_000, 10_000)
      const served = ours().filter(frame => frame['result'] !== undefined).length
      return judge(pinged && ours().length === 1_000 && served >= 64, `${served} served, ${ours().length - served} told to wait`)
    },
  },
]

const ends: readonly PipeAttack[] = [
  {
    key: 'S13',
    name: 'a client that floods and never reads: at most 8 MiB wait for it, and it is cut',
    patient: true,
    heavy: true,
    last: true,
    unrated: true,
    run: async pipe => {
      const logs = isModern(pipe.era) ? { _meta: { 'io.modelcontextprotocol/logLevel': 'debug' } } : {}
      pipe.read(false)
      const { used: before } = await pipe.target.facts(true)
      await pipe.say(call(pipe.era, 'flood', { pieces: 1_280, bytes: 65_536, kind: 'log' }, 1, logs))
      void pipe.write(`${JSON.stringify(call(pipe.era, 'big', { bytes: 65_536 }))}\n`.repeat(2_000))
      let held = before
      let cut = false
      const started = performance.now()
      while (!cut && performance.now() - started < 20_000) {
        await new Promise(done => setTimeout(done, 100))
        const facts = await pipe.target.facts(true)
        held = Math.max(held, facts.used)
        cut = facts.ended
      }
      const seconds = ((performance.now() - started) / 1000).toFixed(1)
      // What the kernel was given already holds the process until nobody can read it any more.
      pipe.target.child.stdout?.destroy()
      const left = await pipe.until(() => pipe.ended, 5_000)
      const detail = `+${mebibytes(held - before)} for 200 MiB, ${cut ? `cut after ${seconds} s` : 'not cut'}`
      return judge(cut && left && held - before <= 8 * mebibyte, left ? detail : `${detail}, and the process stays`)
    },
  },
  {
    key: 'S16',
    name: 'an end in the middle of a line: the process ends in order, without a trace of its insides',
    last: true,
    run: async pipe => {
      await pipe.write('{"jsonrpc":"2.0","id":1,"meth')
      pipe.target.child.stdin?.end()
      const ended = await pipe.until(() => pipe.ended, 5_000)
      const clean = pipe.target.child.exitCode === 0 && !/\n\s+at /.test(pipe.target.stderr())
      return ended ? judge(clean, `exit ${pipe.target.child.exitCode}`) : badly('it goes on')
    },
  },
]

export const pipeAttacks: readonly PipeAttack[] = [...framing, ...meaning, ...ends].sort((a, b) => a.key.localeCompare(b.key))

/** Fires one attack at a process of its own. */
export async function fireAt(attack: PipeAttack, pipe: PipeLine): Promise<Verdict> {
  if (attack.last === true) return attack.run(pipe)
  const { result, grown } = await growth(pipe.target, () => attack.run(pipe))
  if (!pipe.target.alive()) return badly(`${result.detail}; the process has ended`)
  const after = await attackWith(pipe, '')
  if (after === undefined) return badly(`${result.detail}; then a good line got no answer`)
  if (attack.memory === undefined) return result
  const detail = `${result.detail}, +${mebibytes(grown.peak)}`
  return result.well && grown.peak <= attack.memory * mebibyte ? well(detail) : badly(detail)
}

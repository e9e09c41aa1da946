/** For tests: the built command as a child process, in a folder of its own with a server file and this package installed. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'

const root = join(import.meta.dirname, '../..')
const bin = join(root, 'bin/vivarium.mjs')

export interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

export interface Trial {
  readonly folder: string
  /** Runs to its end. */
  run(
    args: readonly string[],
    more?: { readonly input?: string; readonly env?: Readonly<Record<string, string>> },
  ): Promise<Ended>
  /** Starts, to be ended later. */
  start(args: readonly string[], env?: Readonly<Record<string, string>>): Started
  /** The same, and it takes its pipes for a terminal: somebody can be asked. */
  terminal(args: readonly string[], env?: Readonly<Record<string, string>>): Started
  write(path: string, text: string): string
}

export interface Started {
  readonly child: ChildProcess
  readonly ended: Promise<number | null>
  out(): string
  err(): string
  until(words: RegExp, from?: 'out' | 'err'): Promise<RegExpExecArray>
}

/** The server that most tests speak with. */
export const serverFile = `
import { createServer, image, reply } from 'vivarium/server'
import { z } from 'zod'
console.log('loading')
let times = 0
export const server = createServer({ name: 'trial', version: '1.2.3', instructions: 'Be kind' })
server.tool('add', { description: 'Adds numbers', input: z.object({ a: z.number(), b: z.number().default(1) }), output: z.object({ sum: z.number() }), annotations: { readOnlyHint: true } }, ({ a, b }) => ({ sum: a + b }))
server.tool('fail', { description: 'Fails' }, (_, ctx) => { throw ctx.problem('RATE_LIMIT_EXCEEDED', 'Too often', { category: 'permanent', suggestion: 'Wait' }) })
server.tool('name', { description: 'Asks' }, async (_, ctx) => { const said = await ctx.elicit({ message: 'Who are you?', schema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } }); return said.action === 'accept' ? 'Hello ' + said.content.name : said.action })
server.tool('slow', { description: 'Counts' }, async (_, ctx) => { for (let at = 1; at <= 3; at++) ctx.progress(at, { total: 3, message: 'step ' + at }); return 'done' })
server.tool('grow', { description: 'Changes the server' }, () => { server.resourceUpdated('note://today'); server.tool('grown_' + times++, { description: 'New' }, () => 'new'); return 'grown' })
server.tool('pixel', { description: 'An image' }, () => reply({ content: [image(new Uint8Array([137, 80, 78, 71]))] }))
server.resource('note://today', { name: 'today', mimeType: 'text/plain' }, () => 'buy milk')
server.prompt('sum', { description: 'Sums up', arguments: { style: { required: true } } }, ({ style }) => 'Sum up, ' + style)
`

export async function trial(files: Readonly<Record<string, string>> = { 'server.ts': serverFile }): Promise<Trial> {
  const folder = await mkdtemp(join(tmpdir(), 'vivarium-cli-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(root, join(folder, 'node_modules/vivarium'))
  symlinkSync(join(root, 'node_modules/zod'), join(folder, 'node_modules/zod'))
  const write = (path: string, text: string): string => {
    const file = join(folder, path)
    mkdirSync(join(file, '..'), { recursive: true })
    writeFileSync(file, text)
    return file
  }
  for (const [path, text] of Object.entries(files)) write(path, text)
  const start = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Started => started(folder, args, env)
  return {
    folder,
    write,
    start,
    terminal: (args, env = {}) => started(folder, args, env, ['--import', asTerminal]),
    run: async (args, { input, env } = {}) => {
      const { child, ended, out, err } = start(args, env)
      child.stdin?.end(input ?? '')
      return { code: await ended, out: out(), err: err() }
    },
  }
}

const asTerminal = `data:text/javascript,${encodeURIComponent(
  `for (const stream of [process.stdin, process.stdout, process.stderr]) Object.defineProperty(stream, 'isTTY', { value: true })`,
)}`

function started(
  cwd: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  node: readonly string[] = [],
): Started {
  const child = spawn(process.execPath, [...node, bin, ...args], {
    cwd,
    env: { PATH: `${join(process.execPath, '..')}:${process.env['PATH'] ?? ''}`, HOME: cwd, ...env },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const heard = { out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    heard.out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    heard.err += text
  })
  const ended = new Promise<number | null>(resolve => child.on('close', resolve))
  return {
    child,
    ended,
    out: () => heard.out,
    err: () => heard.err,
    until: async (words, from = 'out') => {
      await expect.poll(() => heard[from], { interval: 20 }).toMatch(words)
      return words.exec(heard[from]) as RegExpExecArray
    },
  }
}

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ConnectOptions } from './api.ts'
import { connect } from './connect.ts'
import type { Command } from './target.ts'

let folder = ''

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'vivarium-probe-'))
})

afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

/** A server that is a program: `react(message, answer)` is its body. It writes down its starts and what it hears. */
function program(react: string, salt = ''): Command {
  const source = `
    const { appendFileSync } = require('node:fs')
    const log = text => appendFileSync(process.env.LOG, text + '\\n')
    const answer = (id, body) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...body }) + '\\n')
    const hello = id => answer(id, { result: { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 'child', version: '1' } } })
    const react = (message, first) => { const { id, method } = message; ${react} }
    log('pid ' + process.pid)
    let held = '', count = 0
    process.stdin.on('data', chunk => {
      const lines = (held + chunk).split('\\n')
      held = lines.pop()
      for (const line of lines) {
        const message = JSON.parse(line)
        log(message.method)
        react(message, count++ === 0)
      }
    }).on('end', () => process.exit(0)) // ${salt}
  `
  return { command: process.execPath, args: ['-e', source], env: { LOG: join(folder, 'log') }, stderr: 'ignore' }
}

function heard(): string[] {
  const path = join(folder, 'log')
  return existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n') : []
}

const methods = () => heard().filter(line => !line.startsWith('pid '))
const pids = () =>
  heard()
    .filter(line => line.startsWith('pid '))
    .map(line => Number(line.slice(4)))

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return !stat.slice(stat.lastIndexOf(')') + 2).startsWith('Z')
  } catch {
    return false
  }
}

async function settle(command: Command, options: ConnectOptions = {}) {
  const [outcome] = await Promise.allSettled([connect(command, options)])
  if (outcome.status === 'fulfilled') await outcome.value.close()
  expect(pids().filter(isRunning)).toEqual([])
  return outcome.status === 'fulfilled' ? outcome.value.revision : outcome.reason
}

const dies = `if (method === 'initialize') return hello(id); if (first) process.exit(7)`

describe('probing a command', () => {
  it('that exits on an unknown first message starts it again, and shakes hands at once (rev §2.6 step 3)', async () => {
    expect(await settle(program(dies, 'dies 1'))).toBe('2025-06-18')
    expect(methods()).toEqual(['server/discover', 'initialize', 'notifications/initialized'])
    expect(pids()).toHaveLength(2)
  })

  it('remembers the verdict per command: the second time there is no probe', async () => {
    const command = program(dies, 'dies 2')
    await settle(command)
    rmSync(join(folder, 'log'))
    expect(await settle(command)).toBe('2025-06-18')
    expect(methods()).toEqual(['initialize', 'notifications/initialized'])
    expect(pids()).toHaveLength(1)
  })

  it('probes anew when the remembered verdict leads to a failure: the server may have been renewed', async () => {
    const renewed = `
      const modern = require('node:fs').existsSync(process.env.LOG + '.new')
      if (!modern) { ${dies} }
      else if (method === 'initialize') answer(id, { error: { code: -32601, message: 'gone' } })
      else if (method === 'server/discover') answer(id, { result: { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: {}, ttlMs: 0, cacheScope: 'public' } })`
    const command = program(renewed, 'renewed')
    expect(await settle(command)).toBe('2025-06-18')
    writeFileSync(join(folder, 'log.new'), '')
    expect(await settle(command)).toBe('2026-07-28')
    expect(methods().slice(-2)).toEqual(['initialize', 'server/discover'])
  })

  it('that answers the probe with an error and dies of it only then is started again too', async () => {
    const late = `
      if (method === 'initialize' && first) return hello(id)
      if (first) return answer(id, { error: { code: -32600, message: 'first initialize' } })
      process.exit(3)`
    expect(await settle(program(late, 'late'))).toBe('2025-06-18')
    expect(pids()).toHaveLength(2)
  })

  it('that stays silent shakes hands on the same pipe after the time given', async () => {
    expect(await settle(program(`if (method === 'initialize') hello(id)`, 'silent'), { probeTimeout: '300ms' })).toBe(
      '2025-06-18',
    )
    expect(methods()).toEqual(['server/discover', 'initialize', 'notifications/initialized'])
    expect(pids()).toHaveLength(1)
  })

  it('that was slow to start is no old server: its late answer to the probe is heard', async () => {
    const modern = `
      const discovered = { supportedVersions: ['2026-07-28'], capabilities: {}, serverInfo: { name: 'child', version: '2' } }
      const say = ({ id, method }) => {
        if (method === 'initialize') hello(id)
        if (method === 'server/discover') answer(id, { result: { resultType: 'complete', ...discovered } })
      }
      globalThis.waiting ??= []
      if (globalThis.awake) return say(message)
      waiting.push(message)
      if (method === 'initialize') { globalThis.awake = true; waiting.forEach(say) }`
    expect(await settle(program(modern, 'slow'), { probeTimeout: '300ms' })).toBe('2026-07-28')
    expect(pids()).toHaveLength(1)
  })

  it('that dies whatever it is sent fails with what it said last', async () => {
    const error = await settle(program(`console.error('no licence'); process.exit(2)`, 'dead'))
    expect(error).toMatchObject({ kind: 'lost', message: expect.stringContaining('no licence') })
    expect(pids()).toHaveLength(2)
  })

  it('that cannot be started fails once, as itself', async () => {
    const error = await settle({ command: join(folder, 'nothing-here'), stderr: 'ignore' })
    expect(error).toMatchObject({ kind: 'refused', message: expect.stringContaining('the program does not exist') })
  })

  it('that dies of the probe is refused by a client of stateless wires, which says why', async () => {
    const error = await settle(program(dies, 'dies 3'), { revisions: ['2026-07-28'] })
    expect(error).toMatchObject({
      kind: 'version-unsupported',
      cause: { kind: 'lost', message: expect.stringContaining('exit code 7') },
    })
    expect(pids()).toHaveLength(1)
  })
})

describe('giving up a command while it is opened', () => {
  it('ends it and throws the reason of the signal', async () => {
    const stop = new AbortController()
    const attempt = settle(program('', 'mute'), { signal: stop.signal })
    await expect.poll(methods).toEqual(['server/discover'])
    stop.abort(new Error('no longer wanted'))
    expect(await attempt).toMatchObject({ message: 'no longer wanted' })
    expect(pids()).toHaveLength(1)
  })

  it('does not start what was given up before', async () => {
    const error = await settle(program('', 'never'), { signal: AbortSignal.abort(new Error('before')) })
    expect(error).toMatchObject({ message: 'before' })
    expect(pids()).toEqual([])
  })
})

/** A real browser without a window, spoken to by its DevTools protocol: one page, in which expressions are evaluated. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** Undefined on machines that have none. */
export const chromium: string | undefined = [
  process.env['CHROMIUM'] ?? '',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
].find(path => path !== '' && existsSync(path))

const flags = [
  ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-dev-shm-usage'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync', '--remote-debugging-port=0'],
]

export interface Page {
  /** The value of an expression, awaited. */
  evaluate(expression: string): Promise<unknown>
  close(): Promise<void>
}

interface Answer {
  readonly id?: number
  /** Of an event, which has no id. */
  readonly method?: string
  readonly error?: { readonly message: string }
  readonly result?: Readonly<Record<string, unknown>>
}

/** Opens the page at `url`, and resolves when it has loaded. */
export async function openPage(binary: string, url: string): Promise<Page> {
  const folder = await mkdtemp(join(tmpdir(), 'chromium-'))
  const browser = spawn(binary, [...flags, `--user-data-dir=${folder}`], { stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = new Promise<void>(resolve => browser.once('exit', () => resolve()))
  const address = await new Promise<string>((resolve, reject) => {
    browser.once('error', reject)
    void ended.then(() => reject(new Error('The browser ended before it listened')))
    createInterface({ input: browser.stderr }).on('line', line => {
      const found = /DevTools listening on (ws:\S+)/.exec(line)?.[1]
      if (found !== undefined) resolve(found)
    })
  })
  const call = await speakTo(address)
  const { targetId } = await call('Target.createTarget', { url: 'about:blank' })
  const { sessionId } = await call('Target.attachToTarget', { targetId, flatten: true })
  const evaluate = async (expression: string): Promise<unknown> => {
    const words = { expression, awaitPromise: true, returnByValue: true }
    const { result, exceptionDetails } = await call('Runtime.evaluate', words, sessionId as string)
    if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails))
    return (result as { value?: unknown }).value
  }
  await call('Page.enable', {}, sessionId as string)
  const loaded = call.once('Page.loadEventFired')
  await call('Page.navigate', { url }, sessionId as string)
  await loaded
  return {
    evaluate,
    async close() {
      browser.kill('SIGKILL')
      await ended
      await rm(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

interface Call {
  (method: string, params: object, sessionId?: string): Promise<Readonly<Record<string, unknown>>>
  /** Resolves with the next event of this name. */
  once(event: string): Promise<void>
}

async function speakTo(address: string): Promise<Call> {
  const socket = new WebSocket(address)
  const waiting = new Map<number, PromiseWithResolvers<Readonly<Record<string, unknown>>>>()
  const events = new Map<string, PromiseWithResolvers<void>>()
  socket.addEventListener('message', ({ data }) => {
    const { id, method, error, result = {} } = JSON.parse(String(data)) as Answer
    if (method !== undefined) events.get(method)?.resolve()
    const waiter = id === undefined ? undefined : waiting.get(id)
    if (error !== undefined) waiter?.reject(new Error(error.message))
    else waiter?.resolve(result)
  })
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve)
    socket.addEventListener('error', () => reject(new Error(`${address} cannot be reached`)))
  })
  let last = 0
  const call = (method: string, params: object, sessionId?: string): Promise<Readonly<Record<string, unknown>>> => {
    const id = ++last
    const waiter = Promise.withResolvers<Readonly<Record<string, unknown>>>()
    waiting.set(id, waiter)
    socket.send(JSON.stringify({ id, method, params, ...(sessionId !== undefined && { sessionId }) }))
    return waiter.promise
  }
  const once = (event: string): Promise<void> => {
    const waiter = Promise.withResolvers<void>()
    events.set(event, waiter)
    return waiter.promise
  }
  return Object.assign(call, { once })
}

/** A browser without a window, spoken to by its DevTools protocol: pages that are opened, looked at and typed into. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Browser } from './find.ts'

const FLAGS = [
  ...[
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-dev-shm-usage',
    '--hide-scrollbars',
  ],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync', '--remote-debugging-port=0'],
  '--force-color-profile=srgb',
]

export type Params = Readonly<Record<string, unknown>>

export interface View {
  readonly width: number
  readonly height: number
  readonly scheme?: 'light' | 'dark'
  readonly scale?: number
}

/** A page. What it asked the network for and what went wrong in it is kept from its beginning. */
export interface Tab {
  /** Addresses that were asked for. */
  readonly requests: readonly string[]
  /** Errors on the console, exceptions, and what could not be loaded. */
  readonly errors: readonly string[]
  /** Resolves when the page has loaded. */
  open(url: string): Promise<void>
  show(view: View): Promise<void>
  /** The value of an expression, awaited. */
  evaluate(expression: string): Promise<unknown>
  /** Presses one key, such as `Tab`, `Enter` or `/`, with the modifiers `shift+` and `ctrl+` before it. */
  press(key: string): Promise<void>
  type(text: string): Promise<void>
  /** Bytes that the page holds, after its garbage was collected. */
  heapBytes(): Promise<number>
  /** What the view shows, or the box of the page. */
  screenshot(format: 'png' | 'webp', clip?: { x: number; y: number; width: number; height: number }): Promise<Buffer>
  close(): Promise<void>
}

export interface RunningBrowser {
  openTab(view?: View): Promise<Tab>
  close(): Promise<void>
}

export async function startBrowser({ path, env }: Browser): Promise<RunningBrowser> {
  const folder = await mkdtemp(join(tmpdir(), 'chromium-'))
  const child = spawn(path, [...FLAGS, `--user-data-dir=${folder}`], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const ended = new Promise<void>(resolve => child.once('exit', () => resolve()))
  const wire = await connectTo(await addressOf(child, ended))
  return {
    openTab: view => openTab(wire, view),
    async close() {
      child.kill('SIGKILL')
      await ended
      await rm(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

function addressOf(child: ChildProcess, ended: Promise<void>): Promise<string> {
  return new Promise<string>((resolve, reject) => {
    child.once('error', reject)
    void ended.then(() => reject(new Error('The browser ended before it listened')))
    createInterface({ input: child.stderr as NodeJS.ReadableStream }).on('line', line => {
      const found = /DevTools listening on (ws:\S+)/.exec(line)?.[1]
      if (found !== undefined) resolve(found)
    })
  })
}

interface Wire {
  call(method: string, params?: object, sessionId?: string): Promise<Params>
  /** Hears the events of one page until the page is closed. */
  listen(sessionId: string, heard: (method: string, params: Params) => void): void
}

interface Answer {
  readonly id?: number
  readonly method?: string
  readonly params?: Params
  readonly sessionId?: string
  readonly error?: { readonly message: string }
  readonly result?: Params
}

async function connectTo(address: string): Promise<Wire> {
  const socket = new WebSocket(address)
  const waiting = new Map<number, PromiseWithResolvers<Params>>()
  const listeners = new Map<string, (method: string, params: Params) => void>()
  socket.addEventListener('message', ({ data }) => {
    const { id, method, params = {}, sessionId = '', error, result = {} } = JSON.parse(String(data)) as Answer
    if (method !== undefined) return listeners.get(sessionId)?.(method, params)
    const waiter = waiting.get(id ?? 0)
    waiting.delete(id ?? 0)
    if (error === undefined) waiter?.resolve(result)
    else waiter?.reject(new Error(error.message))
  })
  socket.addEventListener('close', () => {
    for (const waiter of waiting.values()) waiter.reject(new Error('The browser has gone'))
  })
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve)
    socket.addEventListener('error', () => reject(new Error(`${address} cannot be reached`)))
  })
  let last = 0
  return {
    call(method, params = {}, sessionId) {
      const id = ++last
      const waiter = Promise.withResolvers<Params>()
      waiting.set(id, waiter)
      socket.send(JSON.stringify({ id, method, params, ...(sessionId !== undefined && { sessionId }) }))
      return waiter.promise
    },
    listen: (sessionId, heard) => void listeners.set(sessionId, heard),
  }
}

async function openTab(wire: Wire, view: View = { width: 1280, height: 900 }): Promise<Tab> {
  const { browserContextId } = await wire.call('Target.createBrowserContext')
  const { targetId } = await wire.call('Target.createTarget', { url: 'about:blank', browserContextId })
  const { sessionId } = (await wire.call('Target.attachToTarget', { targetId, flatten: true })) as { sessionId: string }
  const call = (method: string, params: object = {}) => wire.call(method, params, sessionId)
  const requests: string[] = []
  const errors: string[] = []
  let loaded = Promise.withResolvers<void>()
  wire.listen(sessionId, (method, params) => {
    if (method === 'Page.loadEventFired') loaded.resolve()
    else if (method === 'Network.requestWillBeSent') requests.push((params['request'] as { url: string }).url)
    else errors.push(...errorIn(method, params))
  })
  for (const domain of ['Page', 'Network', 'Runtime', 'Log']) await call(`${domain}.enable`)
  const tab: Tab = {
    requests,
    errors,
    async open(url) {
      loaded = Promise.withResolvers()
      const { errorText } = await call('Page.navigate', { url })
      if (errorText !== undefined) throw new Error(`${url}: ${String(errorText)}`)
      await loaded.promise
    },
    async show({ width, height, scheme = 'light', scale = 1 }) {
      await call('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: scale, mobile: false })
      await call('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] })
    },
    async evaluate(expression) {
      const words = { expression, awaitPromise: true, returnByValue: true }
      const { result, exceptionDetails } = await call('Runtime.evaluate', words)
      if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails))
      return (result as { value?: unknown }).value
    },
    async press(pressed) {
      const words = keyOf(pressed)
      await Promise.all(['keyDown', 'keyUp'].map(type => call('Input.dispatchKeyEvent', { type, ...words })))
    },
    type: async text => void (await call('Input.insertText', { text })),
    async heapBytes() {
      await call('HeapProfiler.collectGarbage')
      const { usedSize } = await call('Runtime.getHeapUsage')
      return Number(usedSize)
    },
    async screenshot(format, clip) {
      const quality = format === 'webp' && { quality: 72 }
      const box = clip && { clip: { ...clip, scale: 1 }, captureBeyondViewport: true }
      const { data } = await call('Page.captureScreenshot', { format, ...quality, ...box })
      return Buffer.from(String(data), 'base64')
    },
    close: async () => void (await wire.call('Target.disposeBrowserContext', { browserContextId })),
  }
  await tab.show(view)
  return tab
}

function errorIn(method: string, params: Params): string[] {
  if (method === 'Runtime.exceptionThrown') return [JSON.stringify(params['exceptionDetails'])]
  if (method === 'Runtime.consoleAPICalled' && params['type'] === 'error') return [JSON.stringify(params['args'])]
  if (method !== 'Log.entryAdded') return []
  const { level, text, url = '' } = params['entry'] as { level: string; text: string; url?: string }
  return level === 'error' ? [`${text} ${url}`] : []
}

const CODES: Readonly<Record<string, number>> = {
  ...{ Tab: 9, Enter: 13, Escape: 27, ' ': 32, End: 35, Home: 36 },
  ...{ ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40 },
}

/** A key as the browser wants to hear of it. */
function keyOf(pressed: string): object {
  const words = pressed.split('+')
  const key = words.at(-1) ?? ''
  const modifiers = (words.includes('ctrl') ? 2 : 0) + (words.includes('shift') ? 8 : 0)
  const code = CODES[key] ?? key.toUpperCase().charCodeAt(0)
  const text = key === 'Enter' ? '\r' : key.length === 1 && modifiers < 2 ? key : undefined
  return { key, code: key, windowsVirtualKeyCode: code, modifiers, ...(text !== undefined && { text }) }
}

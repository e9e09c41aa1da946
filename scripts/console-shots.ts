/** Pictures of every screen of the web console, for whoever changes it: a gateway's and an author's, in light, dark and narrow. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from 'vivarium/client'
import { observeGateway, type RunningConsole, serveConsole } from 'vivarium/console'
import { createGateway } from 'vivarium/gateway'
import { createServer } from 'vivarium/server'
import { memoryStore } from 'vivarium/stores'
import { z } from 'zod'
import { createEverything } from '../examples/everything/everything.ts'
import type { RunningBrowser, Tab, View } from './browser/devtools.ts'

interface Screen {
  readonly name: string
  readonly path: string
  /** A text that the page shows when it can be taken. */
  readonly shows: string
}

interface Subject {
  readonly name: string
  readonly console: RunningConsole
  readonly screens: readonly Screen[]
  /** Makes a call to be seen, and gives its id, which stands for `CALL` in addresses. The page is signed in. */
  prepare?(tab: Tab): Promise<string>
  close(): Promise<void>
}

const views: Readonly<Record<string, View>> = {
  light: { width: 1280, height: 820 },
  dark: { width: 1280, height: 820, scheme: 'dark' },
  narrow: { width: 390, height: 844 },
}

/** How long a screen may take. */
const mostMs = 15_000
/** Pictures are drawn a moment after their data is there. */
const drawnMs = 300

/** Writes `console-SUBJECT-SCREEN-VIEW.png` into the folder, and gives the names of the files. */
export async function takeConsoleShots(browser: RunningBrowser, folder: string): Promise<readonly string[]> {
  const files: string[] = []
  for (const open of [openGateway, openAuthor]) {
    const subject = await open()
    const tab = await browser.openTab()
    try {
      await tab.open(subject.console.link)
      const made = (await subject.prepare?.(tab)) ?? ''
      for (const [view, size] of Object.entries(views)) {
        await tab.show(size)
        for (const screen of subject.screens) {
          const file = `console-${subject.name}-${screen.name}-${view}.png`
          if (await shows(tab, new URL(screen.path.replace('CALL', made), subject.console.url).href, screen.shows)) {
            writeFileSync(join(folder, file), await tab.screenshot('png'))
            files.push(file)
          } else console.log(`shots: ${file} is left out: the page does not show "${screen.shows}"`)
        }
      }
    } finally {
      await tab.close()
      await subject.close()
    }
  }
  return files
}

async function shows(tab: Tab, url: string, text: string): Promise<boolean> {
  await tab.open(url)
  for (const end = Date.now() + mostMs; Date.now() < end; await sleep(100)) {
    if (!String(await tab.evaluate('document.body.innerText')).includes(text)) continue
    await sleep(drawnMs)
    return true
  }
  return false
}

/** A gateway with an approval that waits, an upstream that is down, and some calls. */
async function openGateway(): Promise<Subject> {
  const server = createServer({ name: 'shop', version: '1.0.0', log: 'silent' })
  const input = z.object({ item: z.string() })
  server.tool('price', { description: 'Says a price', annotations: { readOnlyHint: true }, input }, ({ item }) => `${item}: 3`)
  server.tool('order', { description: 'Orders', annotations: { destructiveHint: true }, input }, ({ item }) => `ordered ${item}`)
  const { url } = await server.listen()
  const store = memoryStore()
  const { options, observer } = observeGateway({
    name: 'team',
    store,
    log: 'silent',
    servers: {
      shop: { url },
      broken: { command: process.execPath, args: ['-e', 'console.error("no disk left"); process.exit(3)'] },
    },
    rules: [
      { name: 'careful', do: 'ask', approver: 'operator', wait: '120s', when: { tool: 'order' }, message: 'Order {item}?' },
      { name: 'no-gold', do: 'deny', when: { tool: 'price', arguments: { item: 'gold' } } },
    ],
  })
  const gateway = await createGateway(options)
  await gateway.ready()
  const { url: front } = await gateway.listen({ port: 0 })
  const running = await serveConsole({ gateway, observer, store, port: 0, by: 'ann' })
  const client = await connect(front)
  for (const item of ['bread', 'salt', 'tea', 'gold', 'rice']) await client.callTool('price', { item }).catch(() => {})
  const waiting = client.callTool('order', { item: 'bread' }).catch(() => {})
  return {
    name: 'gateway',
    console: running,
    screens: [
      { name: 'overview', path: '/overview', shows: 'Servers' },
      { name: 'server', path: '/overview?server=broken', shows: 'no disk left' },
      { name: 'approvals', path: '/approvals', shows: 'order' },
      { name: 'audit', path: '/audit', shows: 'call ended' },
      { name: 'clients', path: '/clients', shows: 'anonymous' },
      { name: 'logs', path: '/logs', shows: 'no disk left' },
    ],
    async close() {
      for (const { id } of await gateway.approvals()) await gateway.refuse(id)
      await waiting
      await client.close()
      await running.close()
      await gateway.close()
      await server.close()
    },
  }
}

/** The everything server, with a call at three revisions that was made by the page. */
async function openAuthor(): Promise<Subject> {
  const server = createEverything()
  const { url } = await server.listen({ port: 0 })
  const running = await serveConsole({ playground: { target: url, name: 'everything' }, port: 0, by: 'ann' })
  return {
    name: 'author',
    console: running,
    prepare: tab => callOnce(tab),
    screens: [
      { name: 'tools', path: '/playground', shows: 'test_' },
      { name: 'tool', path: '/playground?kind=tool&item=greet&rev=2026-07-28,2025-06-18,2024-11-05', shows: 'Revisions' },
      { name: 'results', path: '/playground?kind=tool&item=greet&rev=2026-07-28,2024-11-05&call=CALL', shows: 'Results' },
      { name: 'traffic', path: '/traffic', shows: 'tools/list' },
      { name: 'frame', path: '/traffic?sel=3', shows: 'Frame 3' },
      { name: 'tapes', path: '/traffic?tape=*', shows: 'Record' },
      { name: 'conformance', path: '/conformance', shows: 'Start' },
      { name: 'approvals', path: '/approvals', shows: 'No approval is requested' },
      { name: 'logs', path: '/logs', shows: 'Hold' },
    ],
    async close() {
      await running.close()
      await server.close()
    },
  }
}

/** A call at two revisions, as the page makes it. */
async function callOnce(tab: Tab): Promise<string> {
  const wish = JSON.stringify({ tool: 'greet', arguments: { name: 'Kim' }, revisions: ['2026-07-28', '2024-11-05'] })
  const body = JSON.stringify(wish)
  const headers = `{ 'content-type': 'application/json', 'x-vivarium': '1' }`
  return String(
    await tab.evaluate(
      `fetch('/api/1/calls', { method: 'POST', headers: ${headers}, body: ${body} }).then(async answer => (await answer.json()).id)`,
    ),
  )
}

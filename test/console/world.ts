/** A gateway with its console and three servers, and a tab of a real browser that found the link: the start of every journey. */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { type Client, connect } from 'vivarium/client'
import { observeGateway, type RunningConsole, serveConsole } from 'vivarium/console'
import { createGateway, type Gateway } from 'vivarium/gateway'
import { createServer } from 'vivarium/server'
import { memoryStore } from 'vivarium/stores'
import { z } from 'zod'
import type { RunningBrowser, Tab } from '../../scripts/browser/devtools.ts'
import { loadPackages } from '../../site/packages.ts'

export interface World {
  readonly gateway: Gateway
  readonly console: RunningConsole
  readonly mcp: Client
  readonly tab: Tab
  /** Opens an address of the page. */
  go(path: string): Promise<void>
  /** Waits until the page shows a text. */
  sees(text: string | RegExp): Promise<void>
  /** What axe says against the page. */
  violations(): Promise<unknown>
  close(): Promise<void>
}

export interface WorldOptions {
  /** Names, descriptions and results that want to be more than text. */
  readonly hostile?: boolean
  readonly tools?: number
}

/** Opens everything. The page is signed in and shows the overview. */
export async function openWorld(browser: RunningBrowser, { hostile = false, tools = 0 }: WorldOptions = {}): Promise<World> {
  const shop = createServer({ name: 'shop', version: '1.0.0' })
  const item = z.object({ item: z.string() })
  shop.tool(
    'price',
    { description: 'Says a price', annotations: { readOnlyHint: true }, input: item },
    ({ item: what }) => `${what}: 3`,
  )
  shop.tool(
    'order',
    { description: 'Orders', annotations: { destructiveHint: true }, input: item },
    ({ item: what }) => `ordered ${what}`,
  )
  for (let each = 0; each < tools; each++) shop.tool(`tool_${each}`, { description: 'One of many' }, () => 'x')
  if (hostile)
    shop.tool('odd', { description: `<img src=x onerror="document.title='taken'">${'\u202e'}`, input: item }, () => 'odd')
  const { url } = await shop.listen()
  const store = memoryStore()
  const { options, observer } = observeGateway({
    name: 'team',
    store,
    servers: {
      shop: { url },
      broken: { command: process.execPath, args: ['-e', 'console.error("no disk left"); process.exit(3)'] },
    },
    rules: [
      {
        name: 'careful',
        do: 'ask',
        approver: 'operator',
        wait: '120s',
        when: { tool: ['order', 'odd'] },
        message: 'Order {item}?',
      },
      { name: 'no-gold', do: 'deny', when: { tool: 'price', arguments: { item: 'gold' } } },
    ],
  })
  const gateway = await createGateway(options)
  await gateway.ready()
  const front = await gateway.listen({ port: 0 })
  const consoleOf = await serveConsole({ gateway, observer, store, port: 0, by: 'ann' })
  const mcp = await connect(front.url)
  const tab = await browser.openTab()
  await tab.open(consoleOf.link)
  const text = async () => String(await tab.evaluate('document.body.innerText'))
  const axe = readFileSync((await loadPackages()).file('axe-core/axe.min.js'), 'utf8')
  const world: World = {
    gateway,
    console: consoleOf,
    mcp,
    tab,
    go: path => tab.open(new URL(path, consoleOf.url).href),
    async sees(wanted) {
      if (typeof wanted === 'string') await expect.poll(text).toContain(wanted)
      else await expect.poll(text).toMatch(wanted)
    },
    async violations() {
      await tab.evaluate(`${axe};undefined`)
      return tab.evaluate(`axe.run(document).then(({ violations }) =>
        violations.map(({ id, nodes }) => id + ': ' + nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)).join(' | ')))`)
    },
    async close() {
      await tab.close()
      await mcp.close()
      await consoleOf.close()
      await gateway.close()
      await shop.close()
    },
  }
  await world.sees('Overview')
  return world
}

/** Fails where the page reported an error, broke its policy, or asked another origin. */
export function expectQuiet({ tab, console: { url } }: World): void {
  expect(tab.errors).toEqual([])
  expect(tab.requests.filter(address => !address.startsWith(url) && !address.startsWith('about:'))).toEqual([])
}

/** Longer than the moment in which a yes does nothing, which is counted in the page by its own clock. */
export async function pastTheInertMoment(): Promise<void> {
  await sleep(1000)
}

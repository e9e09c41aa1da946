/** A gateway with its console and three servers, and a tab of a real browser that found the link: the start of every journey. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Client, connect } from 'vivarium/client'
import { observeGateway, serveConsole } from 'vivarium/console'
import { createGateway, type Gateway } from 'vivarium/gateway'
import { createServer } from 'vivarium/server'
import { memoryStore } from 'vivarium/stores'
import { z } from 'zod'
import type { RunningBrowser } from '../../scripts/browser/devtools.ts'
import { openPage, type Page } from './page.ts'

export interface World extends Page {
  readonly gateway: Gateway
  readonly mcp: Client
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
  const page = await openPage(browser, consoleOf)
  const world: World = {
    ...page,
    gateway,
    mcp,
    async close() {
      await page.tab.close()
      await mcp.close()
      await consoleOf.close()
      await gateway.close()
      await shop.close()
    },
  }
  await world.sees('Overview')
  return world
}

/** Longer than the moment in which a yes does nothing, which is counted in the page by its own clock. */
export async function pastTheInertMoment(): Promise<void> {
  await sleep(1000)
}

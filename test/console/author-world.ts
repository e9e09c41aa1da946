/** A server with the console of its author, and a tab of a real browser that found the link. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { serveConsole } from 'vivarium/console'
import { createServer } from 'vivarium/server'
import { memoryPair } from 'vivarium/testing'
import { z } from 'zod'
import type { RunningBrowser } from '../../scripts/browser/devtools.ts'
import type { Acceptor, Connection } from '../../src/jsonrpc/connection.ts'
import { openPage, type Page } from './page.ts'

export interface AuthorWorld extends Page {
  /** What the tool `order` was asked for, in order. */
  readonly ordered: readonly string[]
  /** The folder of the tapes. */
  readonly tapes: string
  close(): Promise<void>
}

export interface AuthorWorldOptions {
  /** Names, texts and schemas that want to be more than text. */
  readonly hostile?: boolean
  /** How many tools there are beside the usual ones. */
  readonly tools?: number
  /** What is judged breaks a rule of the specification. */
  readonly broken?: boolean
}

/** Opens everything. The page is signed in and shows the playground. */
export async function openAuthorWorld(
  browser: RunningBrowser,
  { hostile = false, tools = 0, broken = false }: AuthorWorldOptions = {},
): Promise<AuthorWorld> {
  const ordered: string[] = []
  const shop = createServer({ name: 'shop', version: '1.0.0' })
  shop.tool(
    'order',
    {
      description: 'Orders something',
      annotations: { destructiveHint: true },
      input: z.object({ item: z.string().describe('What to order'), loaves: z.number().int().min(1).optional() }),
      output: z.object({ id: z.string(), loaves: z.number() }),
    },
    ({ item, loaves = 1 }) => {
      ordered.push(item)
      return { id: 'T-3', loaves }
    },
  )
  shop.tool('count', { description: 'Tells each step', input: z.object({ to: z.number() }) }, async ({ to }) => {
    // Not as progress, of which a server tells only the last of many.
    const told = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'a step' } })
    for (let step = 1; step <= to; step++) await lastOpened?.send(told)
    return `counted to ${to}`
  })
  const names = ['Kim', 'Kay', 'Lou']
  shop.prompt(
    'greet',
    { arguments: z.object({ name: z.string() }), complete: { name: typed => names.filter(each => each.startsWith(typed)) } },
    ({ name }) => `Hello ${name}`,
  )
  let times = 0
  shop.tool('tell', { description: 'Counts its calls' }, () => `told ${++times} times`)
  shop.tool('ask', { description: 'Asks its user' }, async (_, ctx) => {
    const answer = await ctx.elicit({ message: 'Which size?', schema: z.object({ size: z.enum(['small', 'large']) }) })
    return answer.action === 'accept' ? `it is ${answer.content.size}` : 'no size'
  })
  for (let each = 0; each < tools; each++) shop.tool(`many_${each}`, { description: 'One of many' }, () => 'x')
  if (hostile) {
    const evil = `<img src=x onerror="document.title='taken'">\u202egnp.exe`
    shop.tool(
      'odd',
      {
        title: evil,
        description: evil,
        input: z.object({ ['<script>document.title="taken"</script>']: z.string().describe(evil) }),
      },
      () => evil,
    )
  }
  const tapes = await mkdtemp(join(tmpdir(), 'tapes-'))
  let lastOpened: Connection | undefined
  const target = () => {
    const [near, far] = memoryPair()
    shop.acceptor.accept(far)
    lastOpened = far
    return near
  }
  const running = await serveConsole({
    playground: { target, name: 'shop', tapes, judge: { acceptor: broken ? breaking(shop.acceptor) : shop.acceptor } },
    port: 0,
    by: 'ann',
  })
  const page = await openPage(browser, running)
  await page.sees('Playground')
  return {
    ...page,
    ordered,
    tapes,
    async close() {
      await page.tab.close()
      await running.close()
      await shop.close()
      await rm(tapes, { recursive: true, force: true })
    },
  }
}

/** The same server, which says of each tool that it takes a text: the arguments of a tool are an object. */
function breaking(acceptor: Acceptor): Acceptor {
  return withMethod(acceptor, 'accept', connection =>
    acceptor.accept(
      withMethod(connection, 'send', (frame, outgoing) =>
        connection.send(frame.replaceAll('"type":"object"', '"type":"string"'), outgoing),
      ),
    ),
  )
}

/** An object of which one method is another, whatever is private in it. */
function withMethod<T extends object, Name extends keyof T>(object: T, name: Name, method: T[Name]): T {
  return new Proxy(object, {
    get: (_, asked) => {
      if (asked === name) return method
      const own: unknown = Reflect.get(object, asked)
      return typeof own === 'function' ? own.bind(object) : own
    },
  })
}

/** What an operator does in the console, by keyboard alone, in a real browser against a real gateway. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type RunningBrowser, startBrowser } from '../../scripts/browser/devtools.ts'
import { findBrowser } from '../../scripts/browser/find.ts'
import { expectLog } from '../log-lines/lines.ts'
import { expectAccessible, expectQuiet } from './page.ts'
import { openWorld, pastTheInertMoment, type World } from './world.ts'

const found = findBrowser()
const note = found === undefined ? ' (skipped: no browser can run on this machine; CHROMIUM may name one)' : ''

describe.skipIf(found === undefined)(`the console of a gateway in a browser${note}`, () => {
  let browser: RunningBrowser
  let world: World

  expectLog('call-waits', /careful/)
  expectLog('upstream-down', /broken/)

  beforeAll(async () => {
    browser = await startBrowser(found as NonNullable<typeof found>)
  })
  afterEach(async () => world?.close())
  afterAll(async () => browser?.close())

  /** Sent without waiting between them, so that two keys of a pair never lie further apart than the page allows. */
  const keys = async (...pressed: readonly string[]) => void (await Promise.all(pressed.map(key => world.tab.press(key))))
  const active = (member: string) => world.tab.evaluate(`document.activeElement?.${member}`)

  it('the link signs in once: the token leaves the address, and the same link is refused afterwards', async () => {
    world = await openWorld(browser)
    expect(await world.tab.evaluate('location.hash')).toBe('')
    expect(await world.tab.evaluate('document.cookie')).toBe('')
    await world.sees('shop')
    const other = await browser.openTab()
    await other.open(world.console.link)
    await expect.poll(() => other.evaluate('document.body.innerText')).toContain('vivarium gateway console FILE')
    await other.close()
    expectQuiet(world)
  })

  it('a yes in the page lets the waiting call go on, by keyboard alone, and the audit log says who gave it', async () => {
    world = await openWorld(browser)
    const call = world.mcp.callTool('order', { item: 'bread' })
    await world.sees('approval is requested')
    await keys('g', 'a')
    await world.sees('Order bread?')
    await world.sees('"item": "bread"')
    await pastTheInertMoment()
    await keys('o')
    for (let presses = 0; presses < 30 && (await active('type')) !== 'submit'; presses++) await keys('Tab')
    expect(await active('textContent')).toBe('Approve')
    await keys('Enter')
    expect((await call).text).toBe('ordered bread')
    await world.sees(/Approved by ann/)
    await keys('g', 'u')
    await world.sees('confirmation answered')
    expectQuiet(world)
  })

  it('a no refuses the call, and a page that was slower hears who was first', async () => {
    world = await openWorld(browser)
    const call = world.mcp.callTool('order', { item: 'salt' }).catch(() => undefined)
    await world.sees('approval is requested')
    await world.go('/approvals')
    // The list has the question too; this is the card.
    await world.sees('"item": "salt"')
    const [waiting] = await world.gateway.approvals()
    await world.gateway.refuse(String(waiting?.id), 'the terminal')
    expect((await call)?.isError).not.toBe(false)
    await world.sees(/Refused by the terminal/)
    expectQuiet(world)
  })

  it('the overview says what needs a person and why a server is down', async () => {
    world = await openWorld(browser)
    await world.sees('server is down: broken')
    await world.go('/overview?server=broken')
    await world.sees('no disk left')
    await world.sees('Connect again')
    expectQuiet(world)
  })

  it('the audit log is filtered by typing, an entry shows its facts, and the chain is proven', async () => {
    world = await openWorld(browser)
    await world.mcp.callTool('price', { item: 'bread' })
    await world.mcp.callTool('price', { item: 'gold' })
    await keys('g', 'u')
    await world.sees('refused')
    await keys('/')
    await world.tab.type('outcome:refused')
    await expect.poll(() => world.tab.evaluate(`document.querySelectorAll('[role=option]').length`)).toBe(1)
    await keys('Escape', 'Tab')
    for (let presses = 0; presses < 10 && (await active('role')) !== 'listbox'; presses++) await keys('Tab')
    await keys('ArrowDown')
    await world.sees('no-gold')
    await keys('p')
    await world.sees(/entries are unbroken/)
    expectQuiet(world)
  })

  it('the palette goes to a screen by typing', async () => {
    world = await openWorld(browser)
    await keys('ctrl+k')
    await expect.poll(() => active('role')).toBe('combobox')
    await world.tab.type('logs')
    await keys('Enter')
    await expect.poll(() => world.tab.evaluate('location.pathname')).toBe('/logs')
    await world.sees('no disk left')
    expectQuiet(world)
  })

  it('a pair of keys is heard though the screen is drawn anew between them', async () => {
    world = await openWorld(browser)
    await world.tab.evaluate(`(async () => {
      const press = key => {
        const event = new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true })
        document.body.dispatchEvent(Object.defineProperty(event, 'timeStamp', { value: 1000 }))
      }
      let listened = 0
      const add = window.addEventListener
      window.addEventListener = (name, ...rest) => { if (name === 'keydown') listened++; return add.call(window, name, ...rest) }
      press('g')
      // What was read before is old now, and a page that is shown again reads it anew.
      const now = Date.now
      Date.now = () => now() + 60_000
      while (listened === 0) {
        document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))
        await new Promise(resolve => setTimeout(resolve, 20))
      }
      press('a')
    })()`)
    await expect.poll(() => world.tab.evaluate('location.pathname')).toBe('/approvals')
    expectQuiet(world)
  })

  it('single letters do nothing once they are switched off', async () => {
    world = await openWorld(browser)
    await world.tab.evaluate(`localStorage.setItem('vivarium-console', '{"letters":false}')`)
    await world.go('/overview')
    await world.sees('Servers')
    await keys('g', 'a')
    expect(await world.tab.evaluate('location.pathname')).toBe('/overview')
    await world.tab.evaluate('localStorage.clear()')
  })

  it('a process that ends is said with the time of the last data, and the data stays', async () => {
    world = await openWorld(browser)
    await world.sees('shop')
    await world.console.close()
    await world.sees(/Disconnected, last data from \d\d:\d\d:\d\d/)
    await world.sees('shop')
  })

  it('axe finds nothing wrong on any screen, in light and dark, wide and narrow, and nothing is wider than the page', async () => {
    world = await openWorld(browser)
    const call = world.mcp.callTool('order', { item: 'bread' }).catch(() => {})
    await world.mcp.callTool('price', { item: 'bread' })
    await world.sees('approval is requested')
    await expectAccessible(world, screens)
    const [waiting] = await world.gateway.approvals()
    await world.gateway.refuse(String(waiting?.id))
    await call
  })

  it('markup and turned text of a server stay text', async () => {
    world = await openWorld(browser, { hostile: true })
    const call = world.mcp.callTool('odd', { item: '<script>document.title="taken"</script>\u202egnp.exe' }).catch(() => {})
    await world.sees('approval is requested')
    await world.go('/approvals')
    await world.sees('⟨U+202E⟩')
    await world.sees('<script>')
    expect(await world.tab.evaluate('document.title')).not.toContain('taken')
    expectQuiet(world)
    const [waiting] = await world.gateway.approvals()
    await world.gateway.refuse(String(waiting?.id))
    await call
  })

  it('a server with two thousand tools leaves the page usable', async () => {
    world = await openWorld(browser, { tools: 2000 })
    await world.go('/overview?server=shop')
    await world.sees('Show all 2,0')
    await keys('g', 'a')
    await expect.poll(() => world.tab.evaluate('location.pathname')).toBe('/approvals')
    expectQuiet(world)
  })
})

const screens = [
  ['/overview', 'Servers'],
  ['/overview?server=broken', 'Standard error'],
  ['/approvals', 'order'],
  ['/audit', 'call ended'],
  ['/clients', 'anonymous'],
  ['/logs', 'no disk left'],
] as const

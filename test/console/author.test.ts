/** What the author of a server does in the console, by keyboard alone, in a real browser against a real server. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { serveConsole } from 'vivarium/console'
import { openTape } from 'vivarium/testing'
import { type RunningBrowser, startBrowser } from '../../scripts/browser/devtools.ts'
import { findBrowser } from '../../scripts/browser/find.ts'
import { type AuthorWorld, openAuthorWorld } from './author-world.ts'
import { expectQuiet, openPage } from './page.ts'

const found = findBrowser()
const note = found === undefined ? ' (skipped: no browser can run on this machine; CHROMIUM may name one)' : ''

describe.skipIf(found === undefined)(`the console of a server's author in a browser${note}`, () => {
  let browser: RunningBrowser
  let world: AuthorWorld

  beforeAll(async () => {
    browser = await startBrowser(found as NonNullable<typeof found>)
  })
  afterEach(async () => world?.close())
  afterAll(async () => browser?.close())

  const keys = async (...pressed: readonly string[]) => void (await Promise.all(pressed.map(key => world.tab.press(key))))
  const value = (expression: string) => world.tab.evaluate(expression)
  const active = (member: string) => value(`document.activeElement?.${member}`)
  const becomes = (expression: string, wanted: unknown) => expect.poll(() => value(expression)).toBe(wanted)

  /** Goes on with Tab until the focus is where `expression` says; `element` is what has the focus. */
  const reach = async (expression: string) => {
    await becomes(`[...document.querySelectorAll('body *')].some(element => ${expression})`, true)
    for (let presses = 0; presses < 60; presses++) {
      if ((await value(`(element => ${expression})(document.activeElement)`)) === true) return
      await keys('Tab')
    }
    expect.fail(`Tab does not reach ${expression}`)
  }
  /** The focus is on what has this name. */
  const named = (name: string) =>
    reach(`(element.getAttribute('aria-label') ?? element.textContent.trim()) === ${JSON.stringify(name)}`)

  /** Chooses a tool of the list by its name. */
  const choose = async (tool: string) => {
    await expect.poll(() => value(`document.querySelectorAll('[role=option]').length`)).toBeGreaterThan(0)
    await keys('/')
    await world.tab.type(tool)
    await becomes(`document.querySelectorAll('[role=option]').length`, 1)
    await reach(`element.role === 'listbox'`)
    await keys('ArrowDown')
    await keys('Enter')
    await becomes(`document.querySelector('main h2')?.textContent`, tool)
  }

  it('a tool is called at two revisions by keyboard alone, and the difference is shown', async () => {
    world = await openAuthorWorld(browser)
    await choose('order')
    await named('item')
    await world.tab.type('bread')
    await keys('Escape')
    await reach(`element.type === 'checkbox' && element.parentElement.textContent.startsWith('2024-11-05')`)
    await keys(' ')
    await expect.poll(() => value('location.search')).toContain('2024-11-05')
    await keys('r')
    await world.sees(/2024-11-05 answers otherwise than \d{4}-\d\d-\d\d/)
    expect(world.ordered).toEqual(['bread', 'bread'])
    await named('difference')
    await keys('Enter')
    await becomes(`document.querySelectorAll('[aria-label^="Difference between"]').length`, 1)
    await expect.poll(() => value(`document.querySelectorAll('.diff-removed').length`)).toBeGreaterThan(0)
    expectQuiet(world)
  })

  it('what is typed as JSON is the form and the other way round, and a mistake is said with its line', async () => {
    world = await openAuthorWorld(browser)
    await choose('order')
    await named('item')
    await world.tab.type('"a\\b" \u00e9\n<b>')
    await named('loaves')
    await world.tab.type('3x')
    await world.sees('3x is not a number.')
    await named('json')
    await keys('Enter')
    await becomes(`document.querySelector('main textarea').value`, '{\n  "item": "\\"a\\\\b\\" \u00e9\\n<b>",\n  "loaves": 3x\n}')
    await world.sees(/Line 3, column 13/)
    await named('Arguments')
    await keys('ctrl+a')
    await world.tab.type('{"item": "two", "loaves": 2, "more": [1]}')
    await named('Run')
    await keys('Enter')
    await world.sees('"T-3"')
    expect(world.ordered).toEqual(['two'])
    expectQuiet(world)
  })

  it('an argument of a prompt is completed by the server', async () => {
    world = await openAuthorWorld(browser)
    await world.go('/playground?kind=prompt&item=greet')
    await named('name')
    await world.tab.type('K')
    await reach(`element.tagName === 'BUTTON' && element.textContent === 'name'`)
    await keys('Enter')
    await named('Kay')
    await keys('Enter')
    await becomes(`document.querySelector('main textarea').value`, 'Kay')
    await named('Run')
    await keys('Enter')
    await world.sees('Hello Kay')
    expectQuiet(world)
  })

  it('a frame is edited and sent again, and its answer is one press away', async () => {
    world = await openAuthorWorld(browser)
    await world.go('/playground?kind=tool&item=order')
    await named('item')
    await world.tab.type('bread')
    await named('Run')
    await keys('Enter')
    await world.sees('"T-3"')
    await keys('g', 't')
    await world.sees('tools/call')
    await keys('/')
    await world.tab.type('method:tools/call kind:request')
    await becomes(`document.querySelectorAll('[role=option]').length`, 1)
    await reach(`element.role === 'listbox'`)
    await keys('ArrowDown')
    await world.sees('Edit and send again')
    await keys('.')
    await expect.poll(() => active('value')).toContain('"bread"')
    const edited = String(await active('value')).replace('"bread"', '"cake"')
    await keys('ctrl+a')
    await world.tab.type(edited)
    await named('Send')
    await keys('Enter')
    await world.sees(/Answered by frame \d+/)
    expect(world.ordered).toEqual(['bread', 'cake'])
    expectQuiet(world)
  })

  it('ten thousand frames scroll with at most 80 rows in the document, and are held while they are read', async () => {
    world = await openAuthorWorld(browser)
    await world.go('/playground?kind=tool&item=count')
    await named('to')
    await world.tab.type('10000')
    await named('Run')
    await keys('Enter')
    await world.sees('counted to 10000')
    await world.go('/traffic')
    await expect
      .poll(() => value(`Number(document.querySelector('[role=option]')?.getAttribute('aria-setsize'))`))
      .toBeGreaterThan(9000)
    await named('Frames')
    await keys(' ')
    await world.sees('Go on')
    const most = await value(`(async () => {
      const box = document.querySelector('[role=listbox]')
      let most = 0
      for (let at = 0; at <= 1; at += 0.05) {
        box.scrollTop = box.scrollHeight * at
        await new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))
        most = Math.max(most, document.querySelectorAll('[role=option]').length)
      }
      return most
    })()`)
    expect(most).toBeGreaterThan(10)
    expect(most).toBeLessThanOrEqual(80)
    expectQuiet(world)
  })

  it('the time axis shows calls as bars, chooses the same frame as the list, and is a table too', async () => {
    world = await openAuthorWorld(browser)
    await world.go('/traffic')
    await expect.poll(() => value(`document.querySelectorAll('canvas').length`)).toBe(1)
    await reach(`element.role === 'application'`)
    await keys('ArrowRight')
    await world.sees(/Frame \d+/)
    const chosen = await value(`new URLSearchParams(location.search).get('sel')`)
    await becomes(
      `document.querySelector('[role=option][aria-selected=true]')?.textContent.startsWith(${JSON.stringify(chosen)})`,
      true,
    )
    await named('As table')
    await keys('Enter')
    await expect.poll(() => value(`document.querySelectorAll('main table tbody tr').length`)).toBeGreaterThan(0)
    expectQuiet(world)
  })

  it('a question of the server is answered by its form, and the call goes on', async () => {
    world = await openAuthorWorld(browser)
    await world.go('/playground?kind=tool&item=ask')
    await named('Run')
    await keys('Enter')
    await world.sees('The server asks for something')
    await keys('g', 'a')
    await world.sees('Which size?')
    await named('size')
    await keys('ArrowDown')
    await keys('Escape', 'Tab')
    await reach(`element.type === 'radio'`)
    await keys('o')
    await becomes(`document.querySelector('[type=submit]').disabled`, false)
    await reach(`element.type === 'submit'`)
    await keys('Enter')
    await world.sees('Approved')
    await keys('g', 't')
    await world.sees('it is small')
    expectQuiet(world)
  })

  it('a tape is saved and replayed, and what the server answers otherwise is shown', async () => {
    world = await openAuthorWorld(browser)
    await world.go('/playground?kind=tool&item=tell')
    await named('Run')
    await keys('Enter')
    await world.sees('told 1 times')
    await keys('g', 't')
    await world.sees('tools/call')
    await named('Tapes')
    await keys('Enter')
    await named('Save only what has passed')
    await keys('Enter')
    await reach(`element.tagName === 'BUTTON' && element.textContent.includes('.tape')`)
    await keys('Enter')
    await named('Replay against the server of now')
    await keys('Enter')
    await world.sees(/\d+ differences? after/)
    await world.sees('told 2 times')
    expectQuiet(world)
  })

  it('a tape is looked at without its server, and nothing of it can be sent', async () => {
    world = await openAuthorWorld(browser)
    await world.go('/traffic?tape=*')
    await named('Save only what has passed')
    await keys('Enter')
    await world.sees('.tape')
    const [name = ''] = await readdir(world.tapes)
    const alone = await serveConsole({ tape: { tape: await openTape(join(world.tapes, name)), name }, port: 0 })
    const page = await openPage(browser, alone)
    await page.sees('tools/list')
    await page.go('/traffic?sel=1')
    await page.sees('Frame 1')
    expect(await page.tab.evaluate('document.body.innerText')).not.toMatch(/Edit and send again|Tapes/)
    expectQuiet(page)
    await page.tab.close()
    await alone.close()
  })

  it('a conformance failure shows its statement and frames', async () => {
    world = await openAuthorWorld(browser, { broken: true })
    await keys('g', 'f')
    await world.sees('Only scenarios with')
    await reach(`element.placeholder?.startsWith('tools') === true`)
    await world.tab.type('base/tools')
    await named('Start')
    await keys('Enter')
    await world.sees(/✗ [1-9]\d* failed/)
    await keys('f')
    await world.sees('Statement')
    await expect.poll(() => value(`document.querySelectorAll('[aria-label="Frame 1"]').length`)).toBe(1)
    expectQuiet(world)
  })

  it('a saved call is there again after the page was loaded anew', async () => {
    world = await openAuthorWorld(browser)
    await choose('order')
    await named('item')
    await world.tab.type('rye')
    await named('Save')
    await keys('Enter')
    await world.go('/playground')
    await world.sees(/saved\s*1/)
    await reach(`element.textContent.startsWith('saved')`)
    await keys('Enter')
    await reach(`element.textContent.includes('"rye"')`)
    await keys('Enter')
    await becomes(`document.querySelector('main textarea[aria-label=item]')?.value`, 'rye')
    expectQuiet(world)
  })

  it('markup, turned text and odd schemas of a server stay text', async () => {
    world = await openAuthorWorld(browser, { hostile: true })
    await choose('odd')
    await world.sees('⟨U+202E⟩')
    await world.sees('<script>document.title="taken"</script>')
    await named('Run')
    await keys('Enter')
    await keys('g', 't')
    await world.sees('tools/call')
    expect(await value('document.title')).not.toContain('taken')
    expectQuiet(world)
  })

  it('a server with two thousand tools leaves the page usable', async () => {
    world = await openAuthorWorld(browser, { tools: 2000 })
    await world.sees('many_')
    await keys('/')
    await world.tab.type('many_1999')
    await becomes(`document.querySelectorAll('[role=option]').length`, 1)
    await keys('Escape', 'g', 't')
    await becomes('location.pathname', '/traffic')
    expect(await value(`document.querySelectorAll('[role=option]').length`)).toBeLessThanOrEqual(80)
    expectQuiet(world)
  })

  it('axe finds nothing wrong on any screen, in light and dark, wide and narrow, and nothing is wider than the page', async () => {
    world = await openAuthorWorld(browser)
    await world.go('/playground?kind=tool&item=order')
    await named('item')
    await world.tab.type('bread')
    await named('Run')
    await keys('Enter')
    await world.sees('"T-3"')
    for (const view of [{ width: 1280, height: 900 } as const, { width: 390, height: 844 } as const]) {
      for (const scheme of ['light', 'dark'] as const) {
        await world.tab.show({ ...view, scheme })
        for (const [path, shown] of screens) {
          await world.go(path)
          await world.sees(shown)
          expect(await world.violations(), `${path} ${scheme} ${view.width}`).toEqual([])
          expect(await value('document.documentElement.scrollWidth'), path).toBeLessThanOrEqual(view.width)
        }
      }
    }
    expectQuiet(world)
  })
})

const screens = [
  ['/playground', 'order'],
  ['/playground?kind=tool&item=order', 'Revisions'],
  ['/traffic', 'tools/list'],
  ['/traffic?sel=1', 'Frame 1'],
  ['/traffic?tape=*', 'Record'],
  ['/conformance', 'Only scenarios with'],
] as const

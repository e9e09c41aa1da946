/** What the user of an agent does in the console, by keyboard alone, in a real browser against a real host with real servers. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { scripted } from 'vivarium/host'
import { type RunningBrowser, startBrowser } from '../../scripts/browser/devtools.ts'
import { findBrowser } from '../../scripts/browser/find.ts'
import { type HostWorld, heldModel, openHostWorld } from './host-world.ts'
import { expectAccessible, expectQuiet } from './page.ts'
import { pastTheInertMoment } from './world.ts'

const found = findBrowser()
const note = found === undefined ? ' (skipped: no browser can run on this machine; CHROMIUM may name one)' : ''

describe.skipIf(found === undefined)(`the console of a host in a browser${note}`, () => {
  let browser: RunningBrowser
  let world: HostWorld

  beforeAll(async () => {
    browser = await startBrowser(found as NonNullable<typeof found>)
  })
  afterEach(async () => world?.close())
  afterAll(async () => browser?.close())

  /** Sent without waiting between them, so that two keys of a pair never lie further apart than the page allows. */
  const keys = async (...pressed: readonly string[]) => void (await Promise.all(pressed.map(key => world.tab.press(key))))
  const active = (member: string) => world.tab.evaluate(`document.activeElement?.${member}`)

  /** Presses Tab until an element with this text or name has the focus. */
  const tabTo = async (name: string) => {
    const named = `(e => e?.getAttribute?.('aria-label') ?? e?.textContent?.trim())(document.activeElement)`
    for (let presses = 0; presses < 60 && (await world.tab.evaluate(named)) !== name; presses++) await keys('Tab')
    expect(await world.tab.evaluate(named)).toBe(name)
  }

  /** Writes a message and sends it. */
  const say = async (text: string) => {
    await expect.poll(() => world.tab.evaluate(`document.querySelector('textarea') !== null`)).toBe(true)
    await keys('/')
    await expect.poll(() => active('tagName')).toBe('TEXTAREA')
    await world.tab.type(text)
    await keys('Enter')
    await expect.poll(() => active('value')).toBe('')
    await keys('Escape')
  }

  /** Goes from a turn that waits to its question, which shows this text, and says yes. */
  const approve = async (shown: string, yes: 'o' | 'y') => {
    await world.sees('Waits for an approval')
    await keys('g', 'a')
    await world.sees(shown)
    await pastTheInertMoment()
    await keys(yes)
    await tabTo('Approve')
    await keys('Enter')
  }

  it('a message is answered while it streams, and the waterfall names each step', async () => {
    const model = heldModel()
    world = await openHostWorld(browser, { model })
    await say('Tell me a story')
    await world.sees('Once upon a time')
    await world.sees('The model answers')
    expect(await world.tab.evaluate(`document.querySelector('article strong')`)).toBeNull()
    model.release()
    await world.sees('there was bread.')
    await expect.poll(() => world.tab.evaluate(`document.querySelector('article strong')?.textContent`)).toBe('bread')
    await world.sees(/Steps of turn \d/i)
    await world.sees(/20 tokens/)
    await world.sees('System prompt of the host')
    await tabTo('as table')
    await keys('Enter')
    await world.sees('Begins')
    await world.sees('model held')
    expectQuiet(world)
  })

  it('an approval in the page lets the tool run, and the step says who allowed it', async () => {
    world = await openHostWorld(browser)
    await say('call mail to=kim')
    await approve('"to": "kim"', 'o')
    await world.sees(/Approved by ann/)
    await keys('g', 'h')
    await world.sees('Sent to kim')
    await world.sees(/yes.* by ann/)
    expectQuiet(world)
  })

  it('a yes for an hour is listed as an answer that still counts, and is withdrawn there', async () => {
    world = await openHostWorld(browser)
    await say('call mail to=kim')
    await approve('"to": "kim"', 'y')
    await world.sees('Answers that still count')
    await tabTo('Ask again about tickets: one call')
    await keys('Enter')
    const listed = `document.querySelector('[aria-label="Answers that still count"]')`
    await expect.poll(() => world.tab.evaluate(listed)).toBeNull()
    expectQuiet(world)
  })

  it('a form of a server is filled in the page, and its tool goes on with the answer', async () => {
    world = await openHostWorld(browser)
    await say('call close')
    await world.sees('Waits for an approval')
    await keys('g', 'a')
    await world.sees('Why are they closed?')
    await pastTheInertMoment()
    await keys('o')
    await world.sees('This is required.')
    for (let presses = 0; presses < 30 && (await active('placeholder')) !== 'not set'; presses++) await keys('Tab')
    await world.tab.type('done')
    await tabTo('Send')
    await keys('Enter')
    await world.sees(/Approved by ann/)
    await keys('g', 'h')
    await world.sees('Closed: done')
    expectQuiet(world)
  })

  it('an event wakes the agent, and the inbox leads to its turn', async () => {
    world = await openHostWorld(browser)
    await keys('g', 'i')
    await world.sees('No event has arrived')
    await world.ring('Somebody rang')
    await world.sees('Somebody rang')
    await world.sees('1 done')
    for (let presses = 0; presses < 20 && (await active('role')) !== 'listbox'; presses++) await keys('Tab')
    await keys('ArrowDown')
    await world.sees('Turn 0 of inbox/door')
    await tabTo('Turn 0 of inbox/door')
    await keys('Enter')
    await world.sees('woken by door/door.bell')
    await world.sees('door says: Somebody rang')
    expectQuiet(world)
  })

  it('a turn is undone after its plan was read, and what stays is said', async () => {
    const model = scripted([
      { calls: [{ name: 'create', arguments: { title: 'Login fails' } }] },
      { calls: [{ name: 'note', arguments: { text: 'told Kim' } }] },
      { calls: [{ name: 'remove', arguments: { id: 'T-9' } }] },
      'Done.',
    ])
    world = await openHostWorld(browser, { model })
    await say('Create a ticket and note it')
    await world.sees('Done.')
    expect(world.tickets()).toBe(1)
    await keys('u')
    await world.sees('What stays')
    await world.sees('tickets/create is undone by a call of remove')
    await world.sees('is rolled back to before its first checkpoint')
    await tabTo('Undo turn 0')
    await keys('Enter')
    await world.sees('Undone, but not all of it: some effects stay.')
    expect(world.tickets()).toBe(0)
    await tabTo('Close')
    await keys('Enter')
    await world.sees('Nothing was said yet.')
    expectQuiet(world)
  })

  it('a set is rolled back to a checkpoint, after its difference was seen', async () => {
    world = await openHostWorld(browser)
    await say('call note text=milk')
    await world.sees('Noted')
    await say('call note text=bread')
    await expect.poll(async () => (await world.host.state.tree('notes', 'notes.edit')).length).toBe(2)
    await keys('g', 's')
    await world.sees('2 checkpoints')
    await keys('d')
    await world.sees('"bread"')
    for (let presses = 0; presses < 20 && (await active('role')) !== 'listbox'; presses++) await keys('Tab')
    await keys('ArrowDown')
    await world.sees('Roll back to here')
    await tabTo('Roll back to here…')
    await keys('Enter')
    await world.sees('is asked first')
    await tabTo('Roll back')
    await keys('Enter')
    await world.sees(/Rolled back\. The head is/)
    expect(await world.host.state.before('notes', 'notes.edit')).toMatchObject({ state: { notes: ['milk'] } })
    expectQuiet(world)
  })

  it('an answer leads to its cause along the graph, by keyboard', async () => {
    world = await openHostWorld(browser)
    await world.ring('Somebody rang')
    await expect.poll(async () => (await world.host.inbox.list({ server: 'door' })).length).toBe(1)
    await world.go('/chat/inbox%2Fdoor')
    await world.sees('door says: Somebody rang')
    await keys('h')
    await world.sees('entries of the audit log')
    for (let presses = 0; presses < 20 && (await active('ariaPressed')) === null; presses++) await keys('Tab')
    await keys('Enter')
    await expect.poll(() => active('ariaPressed')).toBe('true')
    expect(await active('textContent')).toContain('event')
    await keys('ArrowRight')
    await expect.poll(() => active('textContent')).toContain('turn')
    await tabTo('Open the turn')
    await keys('Enter')
    await world.sees('woken by door/door.bell')
    expectQuiet(world)
  })

  it('markup of a model and of a server stays text, and a link asks before it leaves', async () => {
    const answer = [
      `<img src=x onerror="document.title='taken'"> <b>not bold</b> [run](javascript:document.title='taken')`,
      `![pixel](https://elsewhere.example/pixel.png) [innocent](https://elsewhere.example/path?q=1) and \u202egnp.exe`,
    ].join('\n\n')
    const model = scripted([{ calls: [{ name: 'note', arguments: { text: 'x' } }] }, answer])
    const result = '<script>document.title="taken"</script>'
    world = await openHostWorld(browser, { model, result })
    await say('Be evil')
    await world.sees('<b>not bold</b>')
    await world.sees("[run](javascript:document.title='taken')")
    await world.sees('![pixel](https://elsewhere.example/pixel.png)')
    await world.sees('innocent (https://elsewhere.example/path?q=1)')
    await world.sees('⟨U+202E⟩gnp.exe')
    await tabTo('innocent (https://elsewhere.example/path?q=1)')
    await keys('Enter')
    await world.sees('Open this address?')
    await keys('Escape')
    await world.go('/chat/main/0?span=call.0')
    await world.sees(result)
    expect(await world.tab.evaluate('document.title')).not.toContain('taken')
    expectQuiet(world)
  })

  it('who may only view reads what happened, without payloads and without ways to act', async () => {
    world = await openHostWorld(browser)
    await say('call note text=milk')
    await world.sees('Noted')
    const viewer = await browser.openTab()
    await viewer.open(world.console.newLink({ by: 'eve', roles: ['viewer'] }))
    const text = async () => String(await viewer.evaluate('document.body.innerText'))
    await expect.poll(text).toContain('Sending messages needs the role operator')
    await expect.poll(text).toContain('The answer is not shown to your role')
    expect(await text()).not.toMatch(/milk|Noted|Undo/)
    expect(viewer.errors).toEqual([])
    await viewer.close()
  })

  it('axe finds nothing wrong on any screen, in light and dark, wide and narrow, and nothing is wider than the page', async () => {
    world = await openHostWorld(browser)
    await say('call note text=milk')
    await world.sees('Noted')
    await world.ring('Somebody rang')
    await expect.poll(async () => (await world.host.inbox.list({ server: 'door', state: 'done' })).length).toBe(1)
    const [event] = await world.host.inbox.list({ server: 'door' })
    const screens = [
      ['/chat', 'Noted'],
      ['/chat/main/0?span=call.0', 'Arguments'],
      [`/inbox?event=door+${event?.eventId}`, 'Attempts'],
      ['/state/notes/notes.edit', '1 checkpoint'],
      [`/explain/${event?.inferenceId}`, 'Causes'],
      ['/explain', 'Turns have their link'],
      ['/approvals', 'No approval is requested'],
      ['/overview', 'Servers'],
    ] as const
    await expectAccessible(world, screens)
  })
})

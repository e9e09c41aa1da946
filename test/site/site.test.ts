/**
 * The documentation site, built as `npm run docs` builds it (without the screenshots), and read in a real browser. The browser comes from
 * the machine or, on Linux, from npm; where none can run, what needs one is skipped.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RunningBrowser, startBrowser, type Tab } from '../../scripts/browser/devtools.ts'
import { findBrowser } from '../../scripts/browser/find.ts'
import { type Built, buildSite } from '../../site/build.ts'
import { createLinks } from '../../site/links.ts'
import { render } from '../../site/markdown.ts'
import { loadPackages } from '../../site/packages.ts'
import { type Serving, serveSite } from '../../site/serve.ts'
import { SECTIONS } from '../../site/structure.ts'
import { type BuiltSite, findDeadLinks, readSite } from './crawl.ts'

const scratch = mkdtempSync(join(tmpdir(), 'site-'))
const browserFound = findBrowser()
let built: Built
let site: BuiltSite

beforeAll(async () => {
  built = await buildSite(join(scratch, 'site'))
  site = readSite(built.folder)
}, 180_000)
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

/** What a reader sees of nested lists before a folded one is opened: of that only its summary. */
function unfolded(list: string): string {
  const folded = /<details(?! class="group" open| open)[^>]*>(<summary>[^<]*<\/summary>)(?:(?!<details)[\s\S])*?<\/details>/g
  const once = list.replace(folded, '$1')
  return once === list ? list : unfolded(once)
}

describe('the files of the site', () => {
  it('every link and anchor leads somewhere', () => {
    expect(findDeadLinks(site)).toEqual([])
  })

  it('every page can be reached from the list of pages', () => {
    const listed = new Set([...site.pages.values()].flatMap(({ sidebar }) => sidebar))
    const elsewhere = (address: string) => address === '/' || address === '/404' || address.startsWith('/source/')
    const orphans = [...site.pages.keys()].filter(address => !elsewhere(address) && !listed.has(address))
    expect(orphans).toEqual([])
  })

  it('the list of pages shows about 40 entries at first, and the page that is read among them', () => {
    for (const [address, { html }] of site.pages) {
      const list = /<nav id="pages"[\s\S]*?<\/nav>/.exec(html)?.[0]
      if (list === undefined) continue
      const shown = unfolded(list)
      expect(shown.match(/<a |<summary/g)?.length, address).toBeLessThanOrEqual(40)
      expect(shown.includes('aria-current="page"'), address).toBe(list.includes('aria-current="page"'))
    }
  })

  it('types of one name are told apart by their entry', () => {
    const titles = site.pages.get('/reference/')?.html.match(/<strong>Client(?: \([a-z]+\))?<\/strong>/g)
    expect(titles).toEqual(['<strong>Client (client)</strong>', '<strong>Client (console)</strong>'])
  })

  it('the source that pages link to can be reached from the list of examples or from a page', () => {
    const linked = new Set([...site.pages.values()].flatMap(({ address, links }) => links.filter(link => link !== address)))
    const orphans = [...site.pages.keys()].filter(address => address.startsWith('/source/') && !linked.has(address))
    expect(orphans).toEqual([])
  })

  it('every page is there as Markdown at its address', () => {
    const twin = (address: string) => (address.endsWith('/') ? `${address}index.md` : `${address}.md`)
    const missing = [...site.pages.keys()].filter(address => address !== '/404' && !site.files.has(twin(address)))
    expect(missing).toEqual([])
    const server = readFileSync(join(built.folder, 'guide/server.md'), 'utf8')
    expect(server).toMatch(/^# Writing a server\n/)
    expect(server).toContain('](errors.md')
  })

  it('links of the Markdown and of llms.txt lead to files of the site', () => {
    for (const file of ['index.md', 'llms.txt', 'guide/live-server.md', 'start/install.md', 'guide/index.md']) {
      const text = readFileSync(join(built.folder, file), 'utf8').replace(/^```[\s\S]*?^```|`[^`\n]+`/gm, '')
      const links = [...text.matchAll(/\]\(([^)#\s]+)[^)]*\)/g)].map(([, link = '']) => new URL(link, `http://site/${file}`))
      const own = links.filter(({ host }) => host === 'site').map(({ pathname }) => decodeURIComponent(pathname))
      expect(own.length, file).toBeGreaterThan(0)
      expect(
        own.filter(path => !site.files.has(path)),
        file,
      ).toEqual([])
    }
  })

  it('llms-full.txt holds the pages, with links from the root', () => {
    const full = readFileSync(join(built.folder, 'llms-full.txt'), 'utf8')
    expect(full).toContain('# Writing a server')
    expect(full).toContain('](/guide/errors.md')
  })

  it('nothing of the site is asked of another origin', () => {
    const foreign = [...site.pages.values()].flatMap(
      ({ html }) => html.match(/<(?:script|link|img|iframe)[^>]+(?:src|href)="(?:https?:)?\/\/[^"]*"/g) ?? [],
    )
    expect(foreign).toEqual([])
  })

  it('variants that a page shows become tabs', () => {
    expect(site.pages.get('/migrate/sdk')?.html).toMatch(/<div class="tabs">\s*<div class="tab" data-label="SDK v1">/)
    expect(site.pages.get('/start/install')?.html).toContain('data-label="From a git address"')
  })
})

describe('a page of Markdown', () => {
  const rendered = async (text: string) => {
    const page = { path: 'docs/guide/page.md', address: 'guide/page', title: 'Page', text }
    return render(page, { packages: await loadPackages(), links: createLinks(new Set()), diagrams: new Map() })
  }

  it('shows the source of a diagram that could not be drawn', async () => {
    const { html } = await rendered('```mermaid\nflowchart LR\n  A --> B\n```\n')
    expect(html).toContain('data-lang="mermaid"')
    expect(html).toContain('A --&gt; B')
  })

  it('shows alerts as GitHub does, and leaves other quotations alone', async () => {
    const { html } = await rendered('> [!WARNING]\n> Do not.\n\nText\n\n> Said somebody.\n')
    expect(html).toMatch(/<div class="alert warning" role="note"><p class="alert-name">Warning<\/p>\s*<p>Do not\.<\/p>\s*<\/div>/)
    expect(html).toMatch(/<blockquote>\s*<p>Said somebody/)
  })

  it('takes parts that begin with bold words as tabs, and says which mark is wrong', async () => {
    const { html } = await rendered('<!-- tabs -->\n\n**One.** First\n\n**Two:** second\n\n<!-- end tabs -->\n')
    expect(html.match(/data-label="[^"]+"/g)).toEqual(['data-label="One"', 'data-label="Two"'])
    expect(html).toContain('<p>First</p>')
    await expect(rendered('<!-- tabs -->\n\n**One.** First\n')).rejects.toThrow(
      'docs/guide/page.md: the comment "tabs" has no "end tabs"',
    )
    await expect(rendered('<!-- tabs: A | B -->\n\n```ts\n1\n```\n')).rejects.toThrow('2 fences must follow')
  })

  it('gives headings the anchors of GitHub, also where two are the same', async () => {
    const { headings } = await rendered('# Page\n\n## `ctx.elicit` & more\n\n## `ctx.elicit` & more\n')
    expect(headings.map(({ anchor }) => anchor)).toEqual(['page', 'ctxelicit--more', 'ctxelicit--more-1'])
  })

  it('a terminal has its commands apart from what they print', async () => {
    const { html } = await rendered('```console\n$ vivarium list\nTools (1)\n```\n')
    expect(html).toMatch(
      /<span class="prompt">\$ <\/span><span class="command">.*list.*<\/span>\n<span class="printed">Tools \(1\)/,
    )
  })
})

const note = browserFound === undefined ? ' (skipped: no browser can run on this machine; CHROMIUM may name one)' : ''

describe.skipIf(browserFound === undefined)(`the site in a browser${note}`, () => {
  let browser: RunningBrowser
  let serving: Serving
  let tab: Tab
  let axe: string

  beforeAll(async () => {
    serving = await serveSite(built.folder)
    browser = await startBrowser(browserFound as NonNullable<typeof browserFound>)
    tab = await browser.openTab()
    axe = readFileSync((await loadPackages()).file('axe-core/axe.min.js'), 'utf8')
  })
  afterAll(async () => {
    await browser?.close()
    await serving?.close()
  })

  const open = (address: string): Promise<void> => tab.open(new URL(address, serving.url).href)
  const where = async (): Promise<string> => String(await tab.evaluate('location.pathname + location.hash'))
  const poll = (expression: string) => expect.poll(() => tab.evaluate(expression))

  /** What axe says against the page that is shown. */
  async function violations(options = '{}'): Promise<unknown> {
    await tab.evaluate(`${axe};undefined`)
    return tab.evaluate(`axe.run(document, { resultTypes: ['violations'], ...${options} }).then(({ violations }) =>
      violations.map(({ id, nodes }) => id + ': ' + nodes.slice(0, 3).map(({ html, any }) => html.slice(0, 160) + ' ' + (any[0]?.message ?? '')).join(' | ')))`)
  }

  /** Of every section its front page and a page or two. */
  const samples = [
    ...SECTIONS.map(({ address }) => `/${address}`),
    ...['/', '/start/install', '/tutorials/notes-server', '/guide/server', '/guide/gateway', '/concepts/journal-and-undo'],
    ...['/reference/cli', '/reference/gateway-clients', '/reference/api/', '/reference/errors/policy', '/performance'],
    ...['/compare/libraries', '/migrate/sdk', '/decisions/0003-dependencies', '/source/examples/notes/server.ts'],
  ]

  it('the diagrams of all pages are drawn', () => {
    expect(built.diagrams).toBeGreaterThan(15)
    expect([...site.pages.values()].filter(({ html }) => html.includes('data-lang="mermaid"'))).toEqual([])
  })

  it.each(samples)('axe finds nothing wrong with %s, in light and in dark colours', async address => {
    await tab.show({ width: 1280, height: 900 })
    await open(address)
    expect(await violations()).toEqual([])
    await tab.show({ width: 1280, height: 900, scheme: 'dark' })
    // Colours are all that differs.
    expect(await violations("{ runOnly: ['color-contrast', 'link-in-text-block'] }")).toEqual([])
  })

  it('axe finds nothing wrong with search and the menu of small screens', async () => {
    await tab.show({ width: 1280, height: 900 })
    await open('/guide/server')
    await search('undo')
    expect(await violations()).toEqual([])
    await tab.show({ width: 390, height: 800 })
    await open('/guide/server')
    await tab.evaluate(`document.querySelector('.menu-button').click()`)
    expect(await violations()).toEqual([])
  })

  it('no page is wider than a screen of 390 pixels', async () => {
    await tab.show({ width: 390, height: 800 })
    for (const address of [
      ...samples,
      '/reference/gateway-config',
      '/reference/conformance-mutations',
      '/reference/api/client',
      '/architecture',
    ]) {
      await open(address)
      expect(await tab.evaluate('document.documentElement.scrollWidth'), address).toBeLessThanOrEqual(390)
    }
  })

  it('nothing but the site was asked for, and nothing went wrong', () => {
    expect(tab.requests.length).toBeGreaterThan(samples.length)
    expect(tab.requests.filter(url => !url.startsWith(serving.url) && !url.startsWith('data:'))).toEqual([])
    expect(tab.errors).toEqual([])
  })

  it('a page without diagrams takes at most 150 kB with all that it loads', async () => {
    for (const address of [
      '/',
      '/guide/server',
      '/reference/conformance-mutations',
      '/reference/gateway-config',
      '/reference/api/client',
    ]) {
      const fresh = await browser.openTab()
      serving.sent.clear()
      await fresh.open(new URL(address, serving.url).href)
      await fresh.evaluate('document.fonts.ready.then(() => undefined)')
      const bytes = [...serving.sent.values()].reduce((sum, each) => sum + each, 0)
      expect(serving.sent.size, address).toBeGreaterThan(4)
      expect(bytes, `${address}: ${JSON.stringify([...serving.sent])}`).toBeLessThan(150_000)
      await fresh.close()
    }
  })

  async function search(words: string): Promise<void> {
    await tab.press('/')
    await poll(`document.activeElement?.type`).toBe('search')
    await tab.type(words)
    await poll(`document.querySelector('.state')?.textContent`).toMatch(/\d results|Nothing/)
  }

  it.each([
    ['undo', /undo/i],
    ['OAuth', /OAuth|Signing in/],
    ['replica', /replica/i],
    ['approval', /approval/i],
  ])('search for "%s" begins with pages about it', async (words, title) => {
    await tab.show({ width: 1280, height: 900 })
    await open('/')
    await search(words)
    const titles = (await tab.evaluate(
      `[...document.querySelectorAll('#hits strong')].map(each => each.textContent)`,
    )) as string[]
    const places = (await tab.evaluate(`[...document.querySelectorAll('#hits small')].map(each => each.textContent)`)) as string[]
    expect(titles[0]).toMatch(title)
    expect(places[0]).toMatch(/^(Guides|Concepts)/)
    expect(titles.slice(0, 3).filter(each => title.test(each)).length).toBeGreaterThanOrEqual(2)
  })

  it('a search without hits says so', async () => {
    await open('/')
    await search('zyzzyva')
    expect(await tab.evaluate(`document.querySelector('.state').textContent`)).toBe('Nothing contains “zyzzyva”.')
  })

  it('a reader with only a keyboard gets from the front page to a heading of a guide', async () => {
    await tab.show({ width: 1280, height: 900 })
    await open('/')
    await search('transactions')
    await tab.press('ArrowDown')
    await tab.press('ArrowUp')
    await tab.press('Enter')
    await expect.poll(where).toBe('/guide/transactions')
    await poll('document.readyState').toBe('complete')
    await tab.press('Tab')
    expect(await tab.evaluate('document.activeElement.textContent')).toBe('Skip to the text')
    await tab.press('Enter')
    await poll('document.activeElement.id').toBe('main')
    for (let presses = 0; presses < 60 && !(await tab.evaluate(`document.activeElement.closest('.outline') !== null`)); presses++)
      await tab.press('Tab')
    const hash = await tab.evaluate('document.activeElement.hash')
    expect(hash).toMatch(/^#./)
    await tab.press('Enter')
    await expect.poll(where).toBe(`/guide/transactions${hash}`)
  })

  it('every section, the list of pages and the colours can be reached with Tab alone', async () => {
    await open('/guide/server')
    const reached = new Set<string>()
    for (let presses = 0; presses < 120; presses++) {
      await tab.press('Tab')
      const name = String(await tab.evaluate(`(each => each.className || each.textContent.trim())(document.activeElement)`))
      // A folded group opens with Enter, and its pages come next.
      if (name === 'Use servers' && !reached.has(name)) await tab.press('Enter')
      reached.add(name)
    }
    for (const name of ['Tutorials', 'Decisions', 'search-button', 'scheme-button', 'Using a server', 'Reference', 'copy'])
      expect(reached, name).toContain(name)
  })

  it('arrows choose between tabs, and the choice counts on the next page', async () => {
    await open('/migrate/sdk')
    await tab.evaluate(`document.querySelector('[role=tab]').focus()`)
    await tab.press('ArrowRight')
    expect(await tab.evaluate(`document.activeElement.textContent + document.activeElement.getAttribute('aria-selected')`)).toBe(
      'Vivariumtrue',
    )
    expect(await tab.evaluate(`document.querySelector('[role=tabpanel]:not([hidden]) code').textContent`)).toContain(
      "import { createServer } from 'vivarium/server'",
    )
    await open('/migrate/sdk-v2')
    expect(await tab.evaluate(`document.querySelector('[aria-selected=true]').textContent`)).toBe('Vivarium')
  })

  it('the button for dark colours is remembered', async () => {
    await tab.show({ width: 1280, height: 900, scheme: 'light' })
    await open('/guide/server')
    const background = () => tab.evaluate('getComputedStyle(document.documentElement).backgroundColor')
    const light = await background()
    await tab.evaluate(`document.querySelector('.scheme-button').click()`)
    const dark = await background()
    expect(dark).not.toBe(light)
    await open('/concepts/')
    expect(await background()).toBe(dark)
    expect(await tab.evaluate(`document.querySelector('.scheme-button').getAttribute('aria-pressed')`)).toBe('true')
    await tab.evaluate('localStorage.clear()')
  })

  it('Escape closes the list of pages on a small screen', async () => {
    await tab.show({ width: 390, height: 800 })
    await open('/guide/server')
    const shown = () => tab.evaluate(`getComputedStyle(document.querySelector('.pages')).display`)
    expect(await shown()).toBe('none')
    await tab.evaluate(`document.querySelector('.menu-button').click()`)
    expect(await shown()).toBe('block')
    await tab.press('Escape')
    expect(await shown()).toBe('none')
  })
})

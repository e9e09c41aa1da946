/** What the site is made of, without its packages and without a browser. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Results } from '../../bench/results.ts'
import { listFiles, root } from '../../scripts/lib/files.ts'
import { chartsOf, drawChart, withCharts } from '../../site/charts.ts'
import { html, raw } from '../../site/html.ts'
import { createLinks, relative } from '../../site/links.ts'
import { addressOf, titleOf } from '../../site/pages.ts'
import { screenOf } from '../../site/shots/ansi.ts'
import { SHOTS } from '../../site/shots/table.ts'
import { arrange } from '../../site/structure.ts'

describe('addresses', () => {
  it('a page lies where its file lies in docs', () => {
    expect(['docs/guide/server.md', 'docs/compare/index.md', 'README.md', 'docs/index.md'].map(addressOf)).toEqual([
      'guide/server',
      'compare/',
      '',
      'contents',
    ])
    expect(addressOf('src/server/index.ts')).toBeUndefined()
  })

  it.each([
    ['guide/server', 'guide/client#calls', 'client#calls'],
    ['guide/server', '', '../'],
    ['', 'guide/server', 'guide/server'],
    ['guide/', 'concepts/', '../concepts/'],
    ['reference/errors/calls', 'errors', '../../errors'],
    ['reference/errors/calls', 'reference/errors/calls', 'calls'],
    ['guide/server', 'guide/server#tools', '#tools'],
    ['', '', './'],
  ])('from "%s" to "%s" it is "%s"', (from, to, link) => {
    expect(relative(from, to)).toBe(link)
    expect(new URL(link, `http://site/${from}`).href).toBe(`http://site/${to}`)
  })

  it('a link to code leads to its source, and one that leads nowhere ends the build', () => {
    const links = createLinks(new Set())
    expect(links.resolve('docs/guide/server.md', '../../examples/notes')).toBe('source/examples/notes/')
    expect([...links.sources]).toEqual(['examples/notes'])
    expect(links.resolve('docs/guide/server.md', 'https://example.com/')).toBeUndefined()
    expect(() => links.resolve('docs/guide/server.md', 'no-such.md')).toThrow(
      'docs/guide/server.md: the link to docs/guide/no-such.md leads nowhere',
    )
  })

  it('a title is shown without the marks of Markdown', () => {
    expect(titleOf('# The `vivarium` command\n')).toBe('The vivarium command')
  })
})

describe('the list of pages', () => {
  it('has each page once, the named ones in their order, and new ones in the last group of their section', () => {
    const pages = ['guide/zebra', 'guide/client', 'guide/server', 'guide/errors', 'glossary', 'new', 'reference/cli-verbs'].map(
      address => ({ address }),
    )
    const listed = arrange(pages).flatMap(({ section, groups }) =>
      groups.flatMap(({ title, pages }) => pages.map(({ address }) => `${section.title}/${title}: ${address}`)),
    )
    expect(listed).toEqual([
      'Guides/Write a server: guide/server',
      'Guides/Write a server: guide/errors',
      'Guides/Use servers: guide/client',
      'Guides/More: guide/zebra',
      'Concepts/: glossary',
      'Reference/Command: reference/cli-verbs',
      'Reference/More: new',
    ])
  })

  it('groups the guides, and orders them, as the page of all pages does', () => {
    const index = readFileSync(join(root, 'docs/index.md'), 'utf8')
    const written = [...index.matchAll(/^## Guides: (.+)\n\n((?:- .+\n)+)/gm)].map(([, title = '', items = '']) => [
      title.charAt(0).toUpperCase() + title.slice(1),
      [...items.matchAll(/\]\((guide\/[a-z-]+)\.md\)/g)].map(([, address]) => address),
    ])
    const pages = listFiles(['docs/guide'], /\.md$/).map(path => ({ address: addressOf(path) ?? path }))
    const guides = arrange(pages).find(({ section }) => section.address === 'guide/')
    const listed = guides?.groups.map(({ title, pages }) => [title, pages.map(({ address }) => address)])
    expect(written.length).toBeGreaterThan(5)
    expect(listed?.filter(([title]) => title !== 'Contribute')).toEqual(written)
  })
})

describe('markup', () => {
  it('values are escaped, and markup is not', () => {
    expect(html`<p title="${'"'}">${'<b>'}${raw('<i>')}${false}${['&', html`<br>`]}</p>`.text).toBe(
      '<p title="&quot;">&lt;b&gt;<i>&amp;<br></p>',
    )
  })
})

describe('the screen of a terminal', () => {
  const lines = (written: string) => screenOf(written).map(({ text }) => text)

  it('colours become classes, and text is escaped', () => {
    expect(lines('\x1b[1m\x1b[36m<a>\x1b[39m b\x1b[22m c')).toEqual([
      '<span class="bold cyan">&lt;a&gt;</span><span class="bold"> b</span> c',
    ])
  })

  it('what a progress line replaced is not shown', () => {
    expect(lines('waiting…\r\x1b[Kdone\nnext')).toEqual(['done', 'next'])
  })
})

describe('charts', () => {
  const cell = (ratio: number) => ({
    cpuMicros: 1,
    cpuSecondsPer1000: 1,
    ratio,
    ratios: [ratio],
    requestsPerSecond: 1,
    p50Ms: 1,
    p99Ms: 1,
    rssMb: 1,
    answerBytes: 1,
  })
  const server: Results['server'] = [
    {
      carrier: 'http',
      revision: '2025-11-25',
      work: 'echo',
      cells: { vivarium: cell(1.3), 'sdk-v1': cell(9.4), 'mcp-lite': { failed: 'no answer' } },
    },
  ]
  const results = {
    node: 'v24.21.0',
    when: '2026-11-01T00:00:00Z',
    quick: false,
    server,
    clients: [],
    cold: [],
  } as unknown as Results

  it('every figure stands beside its bar, and a contender without one has none', () => {
    const chart = chartsOf(results)[0]?.[1]
    const drawn = chart === undefined ? '' : drawChart(chart).text
    expect(drawn).toContain('HTTP 2025-11-25, echo: Vivarium 1.30, SDK v1 9.40')
    expect(drawn.match(/<rect/g)).toHaveLength(2)
    expect(drawn).not.toContain('mcp-lite')
    const [ours = 0, theirs = 0] = [...drawn.matchAll(/<rect[^>]+ width="([\d.]+)"/g)].map(([, width]) => Number(width))
    expect(theirs / ours).toBeCloseTo(9.4 / 1.3, 1)
  })

  it('a chart stands under its heading; without figures the page stays as it is', () => {
    const page = '<h2 id="server-cpu-as-a-multiple-of-the-floor">Server</h2>\n<p>Text</p>'
    expect(withCharts(page, results)).toMatch(/<\/h2>\n<figure class="chart">[\s\S]+<\/figure>\n<p>Text<\/p>$/)
    expect(withCharts(page, { ...results, server: [] })).toBe(page)
  })
})

describe('the table of screenshots', () => {
  it('names are unique, and each says what is seen', () => {
    expect(new Set(SHOTS.map(({ name }) => name)).size).toBe(SHOTS.length)
    expect(SHOTS.filter(({ alt }) => alt.length < 40)).toEqual([])
  })
})

/** The front page: the README, laid out so that a reader sees in one screen what the project is and where to begin. */
import { html, type Markup, raw } from './html.ts'
import { relative } from './links.ts'
import { type Rendered, render, type Setting } from './markdown.ts'
import type { Page } from './pages.ts'
import { logo } from './theme/logo.ts'

const WAYS: readonly (readonly [address: string, title: string, text: string])[] = [
  ['start/first-server', 'Build a server', 'One file, tools as plain functions. It serves every revision on every transport.'],
  [
    'start/first-agent',
    'Build an agent',
    'Many servers, one model, with approvals, budgets and undo. No API key needed to begin.',
  ],
  ['start/first-gateway', 'Run a gateway', 'One address in front of any servers, old and new, with rules and an audit log.'],
  ['guide/conformance', 'Test any server', 'One command checks a server, a client or a host against the specification.'],
  ['migrate/', 'Migrate', 'What you wrote with the official SDK or FastMCP, and what it becomes.'],
  ['concepts/', 'Understand it', 'Sessions, events, undo, replicas and trust, with diagrams.'],
]

/** Sections of the README whose first program is shown at the top. */
const PROGRAMS = ['A server', 'A client', 'An agent', 'A gateway']

export function frontPage(page: Page, setting: Setting, shot: Markup | undefined): { body: Markup; rendered: Rendered } {
  const to = (address: string) => relative(page.address, address)
  const part = (title: string): string => sectionText(page.text, title)
  const shown = (text: string): Markup => raw(render({ ...page, text }, setting).html)
  const intro = page.text.split(/^#.*\n/m)[1] ?? ''
  const diagram = /```mermaid\n[\s\S]*?```\n/.exec(intro)?.[0] ?? ''
  const programs = PROGRAMS.filter(title => part(title) !== '')
    .map(title => `${/```ts\n[\s\S]*?^```\n/m.exec(part(title))?.[0] ?? ''}`)
    .join('\n')
  const names = PROGRAMS.filter(title => part(title) !== '').map(title =>
    title.replace(/^An? (.)/, (_, first: string) => first.toUpperCase()),
  )
  const features = 'What you get that the official SDK does not have'
  const body = html`<main id="main" class="front" tabindex="-1">
<section class="hero">
<div class="hero-text">
${logo(72)}
<h1>The live runtime for <abbr title="Model Context Protocol">MCP</abbr></h1>
${shown(intro.replace(diagram, ''))}
<p class="actions"><a class="button" href="${to('start/install')}">Get started</a><a class="button quiet" href="${to('compare/')}">Compare</a></p>
</div>
<div class="hero-code">${shown(`<!-- tabs: ${names.join(' | ')} -->\n\n${programs}`)}</div>
</section>
<section class="ways" aria-labelledby="ways"><h2 id="ways">Where to begin</h2>
<ul>${WAYS.map(([address, title, text]) => html`<li><a href="${to(address)}"><strong>${title}</strong><span>${text}</span></a></li>`)}</ul></section>
<section class="picture" aria-labelledby="picture"><h2 id="picture">How the parts fit</h2>${shown(diagram)}</section>
<section class="install"><h2 id="install">Install</h2>${shown(part('Install'))}</section>
${shot && html`<section class="terminal-shot" aria-labelledby="terminal"><h2 id="terminal">In the terminal</h2>${shot}</section>`}
<section class="features"><h2 id="features">${features}</h2>${shown(part(features))}</section>
<section><h2 id="status">Status</h2>${shown(part('Status'))}</section>
</main>`
  return { body, rendered: render(page, setting) }
}

/** What stands under a heading of the second level. */
function sectionText(text: string, title: string): string {
  const sections = text.split(/^## /m)
  return sections.find(section => section.startsWith(`${title}\n`))?.slice(title.length) ?? ''
}

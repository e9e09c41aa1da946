/** What a page does: colours, copying, tabs, the list of pages on small screens, where the reader is, and search when it is asked for. */
import { markPlace } from './place.ts'
import { enhanceTabs } from './tabs.ts'

const root = document.documentElement

function scheme(): void {
  const button = document.querySelector<HTMLButtonElement>('.scheme-button')
  const dark = matchMedia('(prefers-color-scheme: dark)')
  const isDark = () => (root.dataset['scheme'] ?? (dark.matches ? 'dark' : 'light')) === 'dark'
  const show = () => button?.setAttribute('aria-pressed', String(isDark()))
  button?.addEventListener('click', () => {
    root.dataset['scheme'] = isDark() ? 'light' : 'dark'
    localStorage.setItem('scheme', root.dataset['scheme'])
    show()
  })
  dark.addEventListener('change', show)
  show()
}

/** Of a terminal the commands are copied, without their prompt and what they printed. */
function textOf(block: Element): string {
  const commands = [...block.querySelectorAll('.command')].map(({ textContent }) => textContent)
  return commands.length > 0 ? commands.join('\n') : (block.querySelector('pre')?.textContent ?? '')
}

function copying(): void {
  document.addEventListener('click', async event => {
    const button = (event.target as Element).closest('.copy')
    const block = button?.closest('.code')
    if (button === null || block === null || block === undefined) return
    await navigator.clipboard.writeText(textOf(block))
    button.textContent = 'Copied'
    setTimeout(() => (button.textContent = 'Copy'), 1500)
  })
}

function menu(): void {
  const button = document.querySelector('.menu-button')
  const open = (wanted: boolean) => {
    document.body.classList.toggle('menu-open', wanted)
    button?.setAttribute('aria-expanded', String(wanted))
  }
  button?.addEventListener('click', () => open(!document.body.classList.contains('menu-open')))
  document.addEventListener('keydown', ({ key }) => key === 'Escape' && open(false))
}

/** What is wider than its place scrolls, and whoever has only a keyboard must be able to reach it. */
function scrolling(): void {
  const named: Readonly<Record<string, string>> = { PRE: 'Code', DIV: 'Table', FIGURE: 'Diagram' }
  const mark = () => {
    for (const each of document.querySelectorAll<HTMLElement>('.code pre, .table, .diagram')) {
      if (each.scrollWidth <= each.clientWidth) {
        each.removeAttribute('tabindex')
        continue
      }
      each.tabIndex = 0
      each.setAttribute('role', 'group')
      each.setAttribute('aria-label', `${named[each.tagName] ?? ''}, scrolls sideways`)
    }
  }
  mark()
  addEventListener('resize', mark)
}

function search(): void {
  const open = async () => (await import('./search.ts')).openSearch()
  document.querySelector('.search-button')?.addEventListener('click', open)
  document.addEventListener('keydown', event => {
    const typing = (event.target as Element).closest('input, textarea') !== null
    if (!((event.key === '/' && !typing) || (event.key === 'k' && (event.ctrlKey || event.metaKey)))) return
    event.preventDefault()
    void open()
  })
}

scheme()
copying()
menu()
enhanceTabs()
scrolling()
search()
markPlace()

/** The search dialog: loaded, with what it searches, when it is opened for the first time. */
import MiniSearch from 'minisearch'
import type { Entry } from '../search-index.ts'

const base = document.querySelector<HTMLElement>('script[data-root]')?.dataset['root'] ?? './'
const most = 12

interface Found {
  readonly entry: Entry
  readonly terms: readonly string[]
}

let ready: Promise<(query: string) => readonly Found[]> | undefined

async function load(): Promise<(query: string) => readonly Found[]> {
  const answer = await fetch(`${base}search.json`)
  if (!answer.ok) throw new Error(`search.json: ${answer.status}`)
  const entries = (await answer.json()) as readonly Entry[]
  const index = new MiniSearch<Entry>({
    fields: ['name', 'heading', 'text', 'code'],
    // The title of a page is searched once, at its beginning, and not again at each of its headings.
    extractField: (entry, field) =>
      field === 'name' ? (entry.heading === '' ? entry.page : '') : String(entry[field as keyof Entry] ?? ''),
    searchOptions: {
      boost: { name: 8, heading: 4, text: 1, code: 0.4 },
      prefix: true,
      fuzzy: term => (term.length > 4 ? 0.2 : false),
      combineWith: 'AND',
      boostDocument: id => entries[id]?.weight ?? 1,
    },
  })
  index.addAll(entries)
  return query =>
    index
      .search(query)
      .slice(0, most)
      .flatMap(({ id, terms }) => (entries[id] === undefined ? [] : [{ entry: entries[id], terms }]))
}

let dialog: HTMLDialogElement | undefined

export function openSearch(): void {
  ready ??= load()
  dialog ??= build()
  if (!dialog.open) dialog.showModal()
  dialog.querySelector('input')?.select()
}

function build(): HTMLDialogElement {
  const made = document.createElement('dialog')
  made.className = 'search'
  made.setAttribute('aria-label', 'Search')
  made.innerHTML = `<div class="search-box"><input type="search" role="combobox" aria-expanded="true" aria-controls="hits" aria-autocomplete="list" aria-label="Search the documentation" placeholder="Search the documentation" autocomplete="off" spellcheck="false"><button type="button" class="close">Close</button></div>
<div id="hits" role="listbox" aria-label="Pages found"></div><p class="state" role="status"></p>`
  const input = made.querySelector('input') as HTMLInputElement
  const list = made.querySelector('#hits') as HTMLElement
  const state = made.querySelector('.state') as HTMLElement
  let chosen = 0
  const choose = (at: number) => {
    const items = [...list.children]
    chosen = items.length === 0 ? 0 : (at + items.length) % items.length
    for (const [index, item] of items.entries()) item.setAttribute('aria-selected', String(index === chosen))
    const item = items[chosen]
    item?.scrollIntoView({ block: 'nearest' })
    if (item) input.setAttribute('aria-activedescendant', item.id)
    else input.removeAttribute('aria-activedescendant')
  }
  const show = async () => {
    const query = input.value.trim()
    state.textContent = query === '' ? 'Type a word, such as a method, an option or an error.' : 'Searching…'
    try {
      const found = query === '' ? [] : ((await ready)?.(query) ?? [])
      if (query !== input.value.trim()) return
      list.replaceChildren(...found.map(hit))
      if (query !== '') state.textContent = found.length === 0 ? `Nothing contains “${query}”.` : `${found.length} results`
      choose(0)
    } catch (error) {
      ready = undefined
      state.textContent = `The search index could not be loaded: ${error instanceof Error ? error.message : String(error)}. Open search again to retry.`
    }
  }
  input.addEventListener('input', show)
  input.addEventListener('keydown', event => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') choose(chosen + (event.key === 'ArrowDown' ? 1 : -1))
    else if (event.key === 'Enter') (list.children[chosen] as HTMLElement | undefined)?.click()
    else return
    event.preventDefault()
  })
  made.querySelector('.close')?.addEventListener('click', () => made.close())
  made.addEventListener('click', event => {
    // A hit on the page that is shown only moves it.
    if (event.target === made || (event.target as Element).closest('a') !== null) made.close()
  })
  document.body.append(made)
  void show()
  return made
}

function hit({ entry, terms }: Found, at: number): HTMLAnchorElement {
  const link = document.createElement('a')
  link.id = `hit-${at}`
  link.setAttribute('role', 'option')
  link.href = base + entry.address
  link.tabIndex = -1
  const title = document.createElement('strong')
  title.append(...marked(entry.heading || entry.page, terms))
  const place = document.createElement('small')
  place.textContent = entry.heading === '' ? entry.section : `${entry.section} › ${entry.page}`
  const excerpt = document.createElement('span')
  excerpt.append(...marked(around(entry.text || entry.code, terms), terms))
  link.append(place, title, excerpt)
  return link
}

/** Some words of a text around the first that was searched for. */
function around(text: string, terms: readonly string[]): string {
  const lower = text.toLowerCase()
  const first = Math.min(...terms.map(term => lower.indexOf(term)).filter(at => at >= 0), text.length)
  const start = first === text.length || first < 60 ? 0 : text.indexOf(' ', first - 50) + 1
  const cut = text.slice(start, start + 150)
  return (start > 0 ? '… ' : '') + cut.replace(/\s+\S*$/, '') + (start + 150 < text.length ? ' …' : '')
}

function marked(text: string, terms: readonly string[]): (string | HTMLElement)[] {
  if (terms.length === 0) return [text]
  const pattern = new RegExp(`(${terms.map(term => term.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|')})`, 'gi')
  return text.split(pattern).map((part, at) => {
    if (at % 2 === 0) return part
    const mark = document.createElement('mark')
    mark.textContent = part
    return mark
  })
}

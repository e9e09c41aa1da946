/** Variants below each other become tabs, by the pattern of WAI-ARIA: arrows move, Tab leaves. A choice counts on every page. */

const remembered = 'tab'

export function enhanceTabs(): void {
  for (const [group, tabs] of [...document.querySelectorAll('.tabs')].entries()) enhance(tabs, `tabs-${group}`)
}

function enhance(tabs: Element, id: string): void {
  const panels = [...tabs.querySelectorAll<HTMLElement>(':scope > .tab')]
  const list = document.createElement('div')
  list.className = 'tab-list'
  list.setAttribute('role', 'tablist')
  list.setAttribute('aria-label', 'Variants')
  const buttons = panels.map((panel, at) => {
    const button = document.createElement('button')
    button.type = 'button'
    button.id = `${id}-${at}`
    button.textContent = panel.dataset['label'] ?? ''
    button.setAttribute('role', 'tab')
    button.setAttribute('aria-controls', `${id}-${at}-panel`)
    panel.id = `${id}-${at}-panel`
    panel.setAttribute('role', 'tabpanel')
    panel.setAttribute('aria-labelledby', button.id)
    button.addEventListener('click', () => choose(at, true))
    return button
  })
  const choose = (chosen: number, byReader: boolean) => {
    for (const [at, button] of buttons.entries()) {
      button.setAttribute('aria-selected', String(at === chosen))
      button.tabIndex = at === chosen ? 0 : -1
      const panel = panels[at]
      if (panel !== undefined) panel.hidden = at !== chosen
    }
    if (byReader) localStorage.setItem(remembered, buttons[chosen]?.textContent ?? '')
  }
  list.addEventListener('keydown', event => {
    const at = buttons.findIndex(button => button.getAttribute('aria-selected') === 'true')
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 }[event.key]
    if (to === undefined) return
    event.preventDefault()
    const next = (to + buttons.length) % buttons.length
    choose(next, true)
    buttons[next]?.focus()
  })
  list.append(...buttons)
  tabs.prepend(list)
  const before = buttons.findIndex(button => button.textContent === localStorage.getItem(remembered))
  choose(Math.max(before, 0), false)
  // A link into a hidden variant shows it.
  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)))
    const at = panels.findIndex(panel => target && panel.contains(target))
    if (at >= 0) choose(at, false)
  }
  addEventListener('hashchange', reveal)
  reveal()
}

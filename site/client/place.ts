/** Where the reader is: the heading in sight is marked in the outline, and the page in the list of pages is in view. */

export function markPlace(): void {
  const pages = document.querySelector('.pages')
  const current = pages?.querySelector<HTMLElement>('[aria-current="page"]')
  if (pages && current && current.offsetTop > pages.clientHeight - 80)
    pages.scrollTop = current.offsetTop - pages.clientHeight / 2

  const links = new Map(
    [...document.querySelectorAll<HTMLAnchorElement>('.outline a')].map(link => [decodeURIComponent(link.hash.slice(1)), link]),
  )
  const headings = [...links.keys()].flatMap(id => document.getElementById(id) ?? [])
  if (headings.length === 0) return
  const mark = () => {
    const last = headings.filter(heading => heading.getBoundingClientRect().top < 120).at(-1) ?? headings[0]
    for (const [id, link] of links) {
      if (id === last?.id) link.setAttribute('aria-current', 'location')
      else link.removeAttribute('aria-current')
    }
  }
  let asked = false
  const later = () => {
    if (asked) return
    asked = true
    requestAnimationFrame(() => {
      asked = false
      mark()
    })
  }
  addEventListener('scroll', later, { passive: true })
  mark()
}

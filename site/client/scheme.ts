/** Runs before anything is drawn, so that a page never flashes in the wrong colours. */
const chosen = localStorage.getItem('scheme')
if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset['scheme'] = chosen
document.documentElement.classList.add('scripted')

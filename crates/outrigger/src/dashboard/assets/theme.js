// Before anything is painted: the theme that was chosen here, or the one of the system.
(() => {
  try {
    const chosen = localStorage.getItem('outrigger-theme');
    if (chosen === 'dark' || chosen === 'light') document.documentElement.dataset.theme = chosen;
  } catch {
    // A browser that keeps nothing has the theme of its system.
  }
})();

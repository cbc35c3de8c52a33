document.body.append('The page of visitors is not built yet.');
